-- SPDX-License-Identifier: MIT
--
-- Read the lock KEYS[1] without changing anything.
--
--   redis-cli --eval inspect.lua KEY {KEY}:dlock {KEY}:dlock:holds {KEY}:dlock:waiting , TOKEN
--
-- TOKEN, if given, is that of a lock that was lost: the server then tells its uptime, unless it still knows that lock.
-- Returns {0, token of the holder, ms left, handed over?, owner, label, ms held, fence, waiting, type of the key,
-- holds, ttl, kept, broken, up}, similar to a refusal of acquire.lua.  The type is "none" if the lock is free.  holds
-- is more than 1 if the lock was entered again, or if several readers share it.  ttl is the length of the lease; 0:
-- unknown.  broken is "MS_AGO TOKEN OWNER": the token of the last lock that was broken, and who did it.  For a lock of
-- Redisson, a hash, the token is the field of the holder.  up is one more than the seconds for which the server has
-- been up, 0 if it was not asked for.
local key, meta, holds, waiting = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local time = redis.call('TIME')
local kind = redis.call('TYPE', key).ok
local left = redis.call('PTTL', key)
local holder = kind == 'string' and redis.call('GET', key) or ''
local field = redis.call('HMGET', meta, 'token', 'gone', 'fence', 'owner', 'label', 'since', 'ttl', 'keep', 'broken')

local now = time[1] * 1000 + time[2] / 1000
local waiters = tonumber(redis.pcall('ZCOUNT', waiting, string.format('%.0f', now), '+inf')) or 0
-- A lock of Redisson is a hash with a field for each holder.  A hash with many fields is something else and is not
-- read.
if kind == 'hash' and (tonumber(redis.pcall('HLEN', key)) or 9) < 9 then
  for _, field in ipairs(redis.pcall('HKEYS', key)) do
    holder = string.match(field, '^%x+%-[%x-]+:%d+') or holder
  end
end
local broken = string.gsub(field[9] or '', '^%d+', function(at)
  return string.format('%.0f', math.max(now - at, 0))
end)
local up = 0
if ARGV[1] and field[1] ~= string.match(ARGV[1], '^[^.]*') then
  local info = redis.pcall('INFO', 'server')
  up = (tonumber(string.match(type(info) == 'string' and info or '', 'uptime_in_seconds:(%d+)')) or -1) + 1
end
if kind ~= 'string' or holder ~= field[1] then
  return {0, string.sub(holder, 1, 64), left, 0, '', '', -1, 0, waiters, kind, 1, 0, '', broken, up}
end
local who, ended, why = string.match(field[8] or '', '^(%S+) %d+ (%d+) (%S+)$')
local kept = who == holder and field[2] == holder and string.format('%.0f %s', math.max(now - ended, 0), why) or ''
local count = tonumber(redis.pcall('ZCOUNT', holds, string.format('%.0f', now), '+inf')) or 0
return {0, holder, left, field[2] == holder and 1 or 0, field[4] or '', field[5] or '',
  math.max(now - (tonumber(field[6] or 0) or 0), 0), tonumber(field[3] or 0) or 0, waiters, kind, math.max(count, 1),
  tonumber(field[7] or 0) or 0, kept, broken, up}
