-- SPDX-License-Identifier: MIT
--
-- Ask TOKEN, which holds the lock KEYS[1], to end.  This marks the metadata; the next renewal of TOKEN reads the mark
-- (renew.lua).  The mark belongs to that token, so it means nothing to a later holder.
--
--   redis-cli --eval ask.lua KEY {KEY}:dlock , TOKEN OWNER
--
-- OWNER is who asks.  The first one who asks stays recorded.
-- Returns 1 if TOKEN holds KEY, and is marked now; 0 if another token holds it, or TOKEN was released; -1 if KEY is
-- free.
local HOUR = 3600000
local key, meta, token = KEYS[1], KEYS[2], ARGV[1]
local holder = redis.pcall('GET', key)

if type(holder) == 'table' then -- WRONGTYPE: not a lock of dlock; other errors are returned
  return string.find(holder.err, 'WRONGTYPE', 1, true) and 0 or holder
end
if not holder then
  redis.call('PEXPIRE', key, 1) -- changes nothing, but fails on a replica, which may lack the key
  return -1
end
local field = redis.call('HMGET', meta, 'gone', 'asked')
if holder ~= token or field[1] == token then
  return 0
end
if string.match(field[2] or '', '^%S*') ~= token then
  local time = redis.call('TIME')
  redis.call('HSET', meta, 'asked', string.format('%s %.0f %s', token, time[1] * 1000 + time[2] / 1000, ARGV[2]))
  if redis.call('PTTL', meta) < 0 then
    redis.call('PEXPIRE', meta, math.max(redis.call('PTTL', key), 0) + HOUR)
  end
end
return 1
