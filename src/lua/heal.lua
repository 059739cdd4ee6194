-- SPDX-License-Identifier: MIT
--
-- Restore the lock KEYS[1] on a node that has lost it, or never got it, while a majority of the nodes still has it
-- for TOKEN.  The node refuses this when its own clock says that the validity on that majority is over, so that a
-- late request restores nothing.  It also refuses a token that was released, and a hold (TOKEN.x, see renew.lua) that
-- ended.
--
--   redis-cli --eval heal.lua KEY {KEY}:dlock {KEY}:dlock:holds , TOKEN TTL_MS FENCE UNTIL_MS OWNER LABEL HELD_MS HOLDS
--
-- UNTIL_MS is a time of day of this server.  HOLDS are the holds that other nodes have, as returned by renew.lua.  A
-- FENCE of more than a day ahead of the clock of this server is not recorded, see fence.lua.
-- Returns 1 if TOKEN holds the lock now, 0 if not, or minus the milliseconds left if another token holds it.
local HOUR, DAY = 3600000, 86400000
local key, meta, holds = KEYS[1], KEYS[2], KEYS[3]
local hold, ttl, fence = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local token = string.match(hold, '^[^.]*')
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local field = redis.call('HMGET', meta, 'gone', 'fence', 'token')
local known = field[3] == token -- then its holds are known, too

if now >= tonumber(ARGV[4]) or field[1] == token then
  return 0
end
if known and tonumber(redis.call('ZSCORE', holds, hold) or 0) < 0 then
  return 0
end
-- KEY expires with the longest of its holds: the hold of this request may end before another one is renewed.
local others, longest = {}, ttl
for id, left in string.gmatch(ARGV[8] or '', '(%S+) (%d+)') do
  if string.match(id, '^[^.]*') == token then
    others[id] = tonumber(left)
    longest = math.max(longest, tonumber(left))
  end
end
if not redis.call('SET', key, token, 'NX', 'PX', string.format('%.0f', longest)) then
  return -math.max(redis.call('PTTL', key), 0)
end
fence = math.max(fence / 1000 <= now + DAY and fence or 0, tonumber(field[2] or 0) or 0)
redis.call('HSET', meta, 'token', token, 'owner', ARGV[5], 'label', ARGV[6], 'ttl', ARGV[2],
  'since', string.format('%.0f', now - tonumber(ARGV[7])), 'fence', string.format('%.0f', fence))
local life = math.max(fence / 1000 - now, longest) + HOUR
if redis.call('PTTL', meta) < life then
  redis.call('PEXPIRE', meta, string.format('%.0f', life))
end
if not known then
  redis.call('DEL', holds)
end
if hold ~= token or next(others) then
  redis.call('ZADD', holds, string.format('%.0f', now + ttl), hold)
  for id, left in pairs(others) do
    redis.call('ZADD', holds, 'NX', string.format('%.0f', now + left), id)
  end
  redis.call('PEXPIRE', holds, redis.call('PTTL', meta))
end
return 1
