-- SPDX-License-Identifier: MIT
--
-- Undo a failed attempt: delete the lock KEYS[1] if TOKEN holds it, and nothing else.
--
--   redis-cli --eval undo.lua KEY , TOKEN
--
-- Returns 1 if TOKEN held the lock, else 0.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
