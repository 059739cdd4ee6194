-- SPDX-License-Identifier: MIT
--
-- Take the lock KEYS[1] for a token, atomically: the key never exists without its expiry, and nothing is changed
-- where another holds it.  A token that was released ("gone") takes nothing any more, however late it comes.
--
--   redis-cli --eval acquire.lua KEY {KEY}:dlock {KEY}:dlock:holds , TOKEN TTL_MS CANDIDATE_US OWNER LABEL GUARD_S ID
--
-- CANDIDATE_US is the client's time of day in microseconds: its proposal for the fence.  A server that has been up for
-- less than GUARD_S seconds grants nothing (0: no such guard).  With ID 1 the answer ends with the server's run_id.
-- Returns {1, fence, run_id} if it was granted; {-1, seconds up, run_id} if the guard refused it; else {0, holder's
-- token, ms left, handed over?, owner, label, ms held, fence, waiting, type of the key, run_id}.  Owner and the rest are
-- empty for a holder that is no dlock.
local HOUR, HALF_HOUR = 3600000, 1800000000
local key, facts, holds = KEYS[1], KEYS[2], KEYS[3]
local token, ttl, candidate, guard = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[6] or 0)
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local fact = redis.call('HMGET', facts, 'token', 'gone', 'fence', 'owner', 'label', 'since', 'waiting')
local fence = tonumber(fact[3] or 0) or 0
local id = ''

if guard > 0 or ARGV[7] == '1' then
  local info = redis.call('INFO', 'server')
  local up = tonumber(string.match(info, 'uptime_in_seconds:(%-?%d+)')) or 0
  id = string.match(info, 'run_id:(%x+)') or ''
  if up < guard and redis.call('EXISTS', key) == 0 then
    return {-1, up, id}
  end
end

if fact[2] ~= token and redis.call('SET', key, token, 'NX', 'PX', ttl) then
  fence = math.max(fence + 1, math.min(candidate, now + HALF_HOUR), now - HALF_HOUR)
  redis.call('DEL', holds)
  redis.call('HSET', facts, 'token', token, 'owner', ARGV[4], 'label', ARGV[5], 'ttl', ARGV[2],
    'since', string.format('%.0f', now / 1000), 'fence', string.format('%.0f', fence))
  local life = math.max((fence - now) / 1000, ttl) + HOUR
  if redis.call('PTTL', facts) < life then
    redis.call('PEXPIRE', facts, string.format('%.0f', life))
  end
  return {1, fence, id}
end

local kind = redis.call('TYPE', key).ok
local holder = kind == 'string' and redis.call('GET', key) or ''
local left = redis.call('PTTL', key)
if holder ~= fact[1] then
  return {0, string.sub(holder, 1, 64), left, 0, '', '', -1, 0, 0, kind, id}
end
return {0, holder, left, fact[2] == holder and 1 or 0, fact[4] or '', fact[5] or '',
  math.max(now / 1000 - (tonumber(fact[6] or 0) or 0), 0), fence, tonumber(fact[7] or 0) or 0, kind, id}
