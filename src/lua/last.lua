-- SPDX-License-Identifier: MIT
--
-- Read how each of many locks ended last, without changing anything.  In a Cluster they must be in one slot.
--
--   redis-cli --eval last.lua KEY {KEY}:dlock:history KEY-2 {KEY-2}:dlock:history ... ,
--
-- Returns {now, and a value for each lock}: its newest entry, see history.lua, or "" if it has none.  The value is 0 if
-- this is not enough, since KEY exists, or the entry was never completed.
local time = redis.call('TIME')
local found = {time[1] * 1000 + math.floor(time[2] / 1000)}

for i = 1, #KEYS, 2 do
  local last = redis.call('LINDEX', KEYS[i + 1], 0) or ''
  local over = redis.call('EXISTS', KEYS[i]) == 0 and not string.find(last, '^%S+ %S+ open ')
  found[#found + 1] = over and string.sub(last, 1, 1400) or 0
end
return found
