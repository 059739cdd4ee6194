-- SPDX-License-Identifier: MIT
--
-- Give the lease of the lock KEYS[1] its full length again, if it is the token's.  It is never made shorter, and a token
-- that was released can't come back.  A token with a suffix, TOKEN.x, is a further hold on the lock of TOKEN: its first
-- renewal enters the lock again.  No hold comes back that has ended.
--
--   redis-cli --eval renew.lua KEY {KEY}:dlock {KEY}:dlock:holds , TOKEN TTL_MS FENCE GUARD_S
--
-- With TTL_MS 0 it is the length that the lock was taken with.  Returns {1, now, length, fence, holds} if it was renewed,
-- {0, now, 0, 0, ''} if another holds it, {0, now, 1, 0, ''} if the token or the hold was given back, {-1, now, 0, 0, ''}
-- if nobody holds it; now is the server's time of day in milliseconds, and holds are those of a lock that
-- was entered again, separated by blanks: each, and for how many milliseconds more its lease lasts.  GUARD_S goes with a
-- hold that enters: a server that has been up for less, or -GUARD_S, admits none, and returns {-2, seconds up, GUARD_S in ms, 0, ''}.
-- A FENCE of more than a day ahead of the server's clock is not recorded, see fence.lua; the fence told is the recorded one.
local HOUR, DAY = 3600000, 86400000
local MOST = 40 -- holds that are told: those that end latest
local key, facts, holds = KEYS[1], KEYS[2], KEYS[3]
local hold, ttl, fence = ARGV[1], tonumber(ARGV[2] or 0), tonumber(ARGV[3] or 0)
local token = string.match(hold, '^[^.]*')
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local holder = redis.pcall('GET', key)

local function ms(n)
  return string.format('%.0f', n)
end

if type(holder) == 'table' then -- a key of another type is not ours; other errors are errors
  return string.find(holder.err, 'WRONGTYPE', 1, true) and {0, now, 0, 0, ''} or holder
end
if not holder then
  redis.call('PEXPIRE', key, 1) -- does nothing, but a replica that lacks the key refuses it instead of misleading us
  return {-1, now, 0, 0, ''}
end
local fact = redis.pcall('HMGET', facts, 'gone', 'fence', 'ttl')
if holder ~= token or fact[1] == token then
  return {0, now, holder == token and 1 or 0, 0, ''}
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
  ttl = tonumber(fact[3] or 0) or left
end

-- Once there is a further hold the set has every hold, the first one too, with the time at which its lease ends; one that
-- was given back has the time until which that is remembered, as a negative number.
local function takes_part()
  if redis.call('EXISTS', holds) == 0 then
    if hold == token then
      return true
    end
    redis.call('ZADD', holds, ms(now + left), token)
  end
  redis.call('ZREMRANGEBYSCORE', holds, ms(-now), ms(now))
  local score = tonumber(redis.call('ZSCORE', holds, hold) or 0)
  if score < 0 then
    return false
  end
  redis.call('ZADD', holds, ms(math.max(score, now + ttl)), hold)
  redis.call('PEXPIRE', holds, ms(math.max(redis.call('PTTL', facts), ttl + HOUR)))
  return true
end

local part = true
if hold ~= token then
  part = takes_part()
else -- a spoilt set is no reason to lose the lock
  local fine, answer = pcall(takes_part)
  part = answer or not fine
end
if not part then
  return {0, now, 1, 0, ''}
end
redis.call('PEXPIRE', key, math.max(left, ttl))

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

if fact.err then
  return {1, now, ttl, 0, live()} -- the facts are spoilt, the lock is not
end
local stored = tonumber(fact[2] or 0) or 0
if stored < fence and fence / 1000 <= now + DAY then
  stored = fence
  redis.call('HSET', facts, 'fence', string.format('%.0f', fence))
end
local life = math.max(stored / 1000 - now, ttl) + HOUR
if redis.call('PTTL', facts) < life then
  redis.call('PEXPIRE', facts, string.format('%.0f', life))
end
return {1, now, ttl, stored, live()}
