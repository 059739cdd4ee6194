-- SPDX-License-Identifier: MIT
--
-- Renew the lease of the lock KEYS[1] for its full length, if TOKEN holds it.  The lease is never made shorter, and a
-- token that was released is never restored.  A token with a suffix, TOKEN.x, is a further hold on the lock of TOKEN:
-- its first renewal enters the lock again.  A hold that has ended is never restored.
--
--   redis-cli --eval renew.lua KEY {KEY}:dlock {KEY}:dlock:holds {KEY}:dlock:history , TOKEN TTL_MS FENCE GUARD_S
--
-- TTL_MS 0 means the length that the lock was acquired with.
-- GUARD_S is the restart guard, for a hold that enters: a server that has been up for less than GUARD_S seconds, or
-- -GUARD_S, admits no hold.
-- A FENCE of more than a day ahead of the clock of this server is not recorded, see fence.lua.
-- Returns {1, now, length, fence, holds, asked} if it was renewed, {0, now, 0, R, '', L} if another token holds it, for
-- another L ms, {0, now, 1, R, ''} if the token or the hold was released, {-1, now, 0, R, ''} if the lock is free; R is
-- 1 if TOKEN is known to have been released, and not broken; {-2, seconds up, GUARD_S in ms, 0, ''} if the guard
-- refused it.
-- now is the time of day of the server in milliseconds.  fence is the recorded fence.  holds are the holds of a lock
-- that was entered again, separated by blanks: each with the milliseconds left.  asked is who asked TOKEN to end
-- (ask.lua), or "".
local HOUR, DAY, MONTH = 3600000, 86400000, 2592000000
local MOST = 40 -- holds that are returned: those that end latest
local key, meta, holds, list = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local hold, ttl, fence = ARGV[1], tonumber(ARGV[2] or 0), tonumber(ARGV[3] or 0)
local token = string.match(hold, '^[^.]*')
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local holder = redis.pcall('GET', key)

local function ms(n)
  return string.format('%.0f', n)
end

if type(holder) == 'table' then -- WRONGTYPE: not a lock of dlock; other errors are returned
  return string.find(holder.err, 'WRONGTYPE', 1, true) and
    {0, now, 0, 0, '', redis.call('PTTL', key)} or holder
end
local field = redis.pcall('HMGET', meta, 'gone', 'fence', 'ttl', 'broken', 'asked')
local broken = string.match(field[4] or '', '^%d+ (%S+)')
local released = field[1] == token and broken ~= token and 1 or 0
if not holder then
  redis.call('PEXPIRE', key, 1) -- changes nothing, but fails on a replica, which may lack the key
  return {-1, now, 0, released, ''}
end
if holder ~= token or field[1] == token then
  local ours = holder == token
  return {0, now, ours and 1 or 0, released, '', ours and 0 or redis.call('PTTL', key)}
end

local guard = tonumber(ARGV[4] or 0)
local info = guard ~= 0 and redis.pcall('INFO', 'server')
if type(info) == 'table' and guard > 0 then
  return info
end
local up = type(info) == 'string' and tonumber(string.match(info, 'uptime_in_seconds:(%-?%d+)')) or math.huge
if up < math.abs(guard) then
  return {-2, up, math.abs(guard) * 1000, 0, ''}
end

local left = redis.call('PTTL', key)
if ttl == 0 then
  ttl = tonumber(field[3] or 0) or left
end

-- If there are further holds, the set has all holds, including the first one, scored by the end of their leases.  A
-- hold that was released has a negative score: the time until which the release is remembered.  A set without a live
-- hold may be that of a further hold that ended before it arrived, so it does not say that the first one has ended.
-- Beside a live hold, the first one is not added: it may have died.
local function takes_part()
  if hold == token and redis.call('EXISTS', holds) == 0 then
    return true
  end
  redis.call('ZREMRANGEBYSCORE', holds, ms(-now), ms(now))
  if hold ~= token and redis.call('ZCOUNT', holds, ms(now), '+inf') == 0 then
    redis.call('ZADD', holds, 'NX', ms(now + left), token)
  end
  local score = tonumber(redis.call('ZSCORE', holds, hold) or 0)
  if score < 0 then
    return false
  end
  redis.call('ZADD', holds, ms(math.max(score, now + ttl)), hold)
  redis.call('PEXPIRE', holds, ms(math.max(redis.call('PTTL', meta), ttl + HOUR)))
  return true
end

local part = true
if hold ~= token then
  part = takes_part()
else -- a set of a wrong type must not lose the lock
  local fine, result = pcall(takes_part)
  part = result or not fine
end
if not part then
  return {0, now, 1, 1, ''}
end
redis.call('PEXPIRE', key, math.max(left, ttl))
redis.pcall('PEXPIRE', list, ms(math.max(left, ttl) + MONTH)) -- shows when the lease ends, see history.lua

local function live()
  local words = {}
  local count = tonumber(redis.pcall('ZCOUNT', holds, ms(now), '+inf')) or 0
  local members = redis.pcall('ZRANGEBYSCORE', holds, ms(now), '+inf', 'WITHSCORES',
    'LIMIT', math.max(count - MOST, 0), MOST)
  for i = 1, #members, 2 do
    words[i], words[i + 1] = members[i], ms(members[i + 1] - now)
  end
  return table.concat(words, ' ')
end

if field.err then
  return {1, now, ttl, 0, live(), ''} -- the metadata key has a wrong type, the lock is intact
end
local stored = tonumber(field[2] or 0) or 0
if stored < fence and fence / 1000 <= now + DAY then
  stored = fence
  redis.call('HSET', meta, 'fence', string.format('%.0f', fence))
end
local life = math.max(stored / 1000 - now, ttl) + HOUR
if redis.call('PTTL', meta) < life then
  redis.call('PEXPIRE', meta, string.format('%.0f', life))
end
local asked, by = string.match(field[5] or '', '^(%S+) %S+ (.*)$')
return {1, now, ttl, stored, live(), asked == token and by or ''}
