-- SPDX-License-Identifier: MIT
--
-- Undo a failed attempt: delete the lock KEYS[1] if TOKEN holds it, and its entry in the history.
--
--   redis-cli --eval undo.lua KEY {KEY}:dlock:history , TOKEN
--
-- Returns 1 if TOKEN held the lock, else 0.
local key, list, token = KEYS[1], KEYS[2], ARGV[1]
local last = redis.pcall('LINDEX', list, 0)

if type(last) == 'string' and string.match(last, '^%S*') == token then
  redis.pcall('LPOP', list)
end
if redis.call('GET', key) == token then
  return redis.call('DEL', key)
end
return 0
