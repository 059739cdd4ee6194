-- SPDX-License-Identifier: MIT
--
-- Leave the queue of the lock KEYS[1]: remove the waiter, and if it is blocked on the wake list, unblock it by its
-- own list LEAVE, on which it is blocked, too.
--
--   redis-cli --eval leave.lua KEY {KEY}:dlock:waiting LEAVE , WAITER BLOCKED
--
-- BLOCKED is 0 if the waiter is not blocked on this node.  Returns 1.
local waiting, leave = KEYS[2], KEYS[3]

redis.pcall('ZREM', waiting, ARGV[1])
if ARGV[2] == '1' then
  redis.call('RPUSH', leave, 'leave')
  redis.call('PEXPIRE', leave, 1000)
end
return 1
