-- SPDX-License-Identifier: MIT
--
-- Break the lock KEYS[1], whoever holds it, if the key still has the given fingerprint: compare and delete in one
-- step.
--
--   redis-cli --eval break.lua KEY , MARK AGAIN
--
-- MARK is the fingerprint of the value of the key.  Without MARK, the script changes nothing and returns the
-- fingerprint: "" if the key is absent, "-" if its value is larger than that of any lock.
-- AGAIN 1 means that the same request was sent before and its reply was lost: an absent key then counts as broken.
-- Returns 1 if it was broken, 0 if the key has another value, -1 if it is absent.
local LARGEST = 65536 -- a larger key is not a lock; reading it would block the server
local key, expected = KEYS[1], ARGV[1] or ''
local kind = redis.call('TYPE', key).ok
local mark = ''

if kind == 'string' then
  local bytes = redis.pcall('MEMORY', 'USAGE', key) -- may be refused by an ACL; GET works without it
  mark = type(bytes) == 'number' and bytes > LARGEST and '-' or redis.sha1hex(redis.call('GET', key))
elseif kind ~= 'none' and redis.call('MEMORY', 'USAGE', key) > LARGEST then
  mark = '-'
elseif kind ~= 'none' then
  mark = redis.sha1hex(string.sub(redis.call('DUMP', key), 1, -11)) -- without the version and the checksum
end
if expected == '' then
  return mark
end
if kind == 'none' then
  redis.call('PEXPIRE', key, 1) -- changes nothing, but fails on a replica, which may lack the key
  return ARGV[2] == '1' and 1 or -1
end
return mark == expected and redis.call('DEL', key) or 0
