-- SPDX-License-Identifier: MIT
--
-- Take back what a failed attempt may have left behind: compare and delete, and nothing else.
--
--   redis-cli --eval undo.lua KEY , TOKEN
--
-- Returns 1 if the lock was the token's, else 0.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
