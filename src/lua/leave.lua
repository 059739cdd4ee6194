-- SPDX-License-Identifier: MIT
--
-- Leave the queue for the lock KEYS[1]: the waiter is not noted any more, and where it is blocked on its wake list it is
-- released from that, since it is blocked on a list of its own, LEAVE, too.
--
--   redis-cli --eval leave.lua KEY {KEY}:dlock:waiting LEAVE , WAITER BLOCKED
--
-- With BLOCKED 0 it isn't blocked here.  Returns 1.
local waiting, leave = KEYS[2], KEYS[3]

redis.pcall('ZREM', waiting, ARGV[1])
if ARGV[2] == '1' then
  redis.call('RPUSH', leave, 'leave')
  redis.call('PEXPIRE', leave, 1000)
end
return 1
