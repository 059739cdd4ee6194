-- SPDX-License-Identifier: MIT
--
-- Pass on a handoff token, HANDOFF, that was delivered to a waiter which has given up: the next waiter in the queue
-- gets it, if the lock KEYS[1] is still reserved by it.
--
--   redis-cli --eval pass.lua KEY {KEY}:dlock {KEY}:dlock:wake , HANDOFF
--
-- Returns 1 if it was passed on, 0 if it is no longer valid.
local key, meta, wake = KEYS[1], KEYS[2], KEYS[3]
local handoff = ARGV[1]

if redis.call('GET', key) ~= handoff or redis.call('HGET', meta, 'gone') ~= handoff
  or redis.call('EXISTS', wake) == 1 then
  return 0
end
local left = redis.call('PTTL', key)
redis.call('LPUSH', wake, handoff)
redis.call('PEXPIRE', wake, math.max(left, 1))
return 1
