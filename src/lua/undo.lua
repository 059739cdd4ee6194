-- SPDX-License-Identifier: MIT
--
-- Undo a failed attempt: delete the lock KEYS[1] if TOKEN holds it, and its entry in the history.
--
--   redis-cli --eval undo.lua KEY , TOKEN {KEY}:dlock
--
-- Returns 1 if TOKEN held the lock, else 0.
local key, token, list = KEYS[1], ARGV[1], (ARGV[2] or KEYS[1]) .. ':history'
local last = redis.pcall('LINDEX', list, 0)

if type(last) == 'string' and string.match(last, '^%S*') == token then
  redis.pcall('LPOP', list)
end
if redis.call('GET', key) == token then
  return redis.call('DEL', key)
end
return 0
