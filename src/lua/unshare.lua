-- SPDX-License-Identifier: MIT
--!df flags=allow-undeclared-keys
-- The line above is that of release.lua.
--
-- Undo a failed attempt of a reader.  Others may have entered the lock KEYS[1] before the reader knew that it has it:
-- then only its hold ends, and the last one hands over (release.lua).  Otherwise KEY is deleted, as by undo.lua.
--
--   redis-cli --eval unshare.lua KEY {KEY}:dlock {KEY}:dlock:holds {KEY}:dlock:wake {KEY}:dlock:waiting \
--       {KEY}:dlock:history , \
--       TOKEN KEEP_MS AGAIN NOTE WINDOW_MS
--
-- The keys and arguments are those of release.lua, which embed-lua.sh includes below.
-- Returns 0 if TOKEN does not hold the lock, or what release.lua or undo.lua returns.
local key, meta, holds, list, token = KEYS[1], KEYS[2], KEYS[3], KEYS[6], ARGV[1]

local function release()
  -- include release.lua
end

if redis.call('GET', key) ~= token or redis.call('HMGET', meta, 'gone')[1] == token then
  return 0
end
if redis.call('EXISTS', holds) == 1 then
  return release()
end
local last = redis.pcall('LINDEX', list, 0)
if type(last) == 'string' and string.match(last, '^%S*') == token then
  redis.pcall('LPOP', list)
end
return redis.call('DEL', key)
