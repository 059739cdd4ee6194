-- SPDX-License-Identifier: MIT
--
-- Record a fence for the lock KEYS[1], if TOKEN still holds it, so that a majority of nodes knows the fence before it
-- is given out.
--
--   redis-cli --eval fence.lua KEY {KEY}:dlock {KEY}:dlock:history , TOKEN FENCE
--
-- Returns 1 if it is recorded, 0 if TOKEN no longer holds the lock, 2 if the fence is more than a day ahead of the
-- clock of this server: a server that reports a wrong fence must not stop fences on other servers from growing with
-- time.
local HOUR, DAY = 3600000, 86400000
local key, meta, list = KEYS[1], KEYS[2], KEYS[3]
local token, fence = ARGV[1], tonumber(ARGV[2])

-- The fence in the entry of this holder, see history.lua.
local function correct_history()
  local before, after = string.match(redis.call('LINDEX', list, 0) or '',
    '^(%S+ %- open %- %S+ %S+ %S+ %S+ %S+ )%S+( .*)$')
  if before and string.match(before, '^%S+') == token then
    redis.call('LSET', list, 0, string.format('%s%.0f%s', before, fence, after))
  end
end

if redis.call('GET', key) ~= token or redis.call('HGET', meta, 'gone') == token then
  return 0
end
local now = redis.call('TIME')[1] * 1000
if (tonumber(redis.call('HGET', meta, 'fence') or 0) or 0) < fence then
  if fence / 1000 > now + DAY then
    return 2
  end
  redis.call('HSET', meta, 'fence', string.format('%.0f', fence))
  pcall(correct_history)
end
local life = math.max(fence / 1000 - now, redis.call('PTTL', key)) + HOUR
if redis.call('PTTL', meta) < life then
  redis.call('PEXPIRE', meta, string.format('%.0f', life))
end
return 1
