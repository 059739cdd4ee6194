-- SPDX-License-Identifier: MIT
--
-- Break the lock KEYS[1], whoever holds it, if the key holds exactly what its mark says: compare and delete in one step.
--
--   redis-cli --eval break.lua KEY , MARK AGAIN
--
-- Without MARK it changes nothing and returns the mark, which tells what the key holds from anything else: "" if the key is
-- absent, "-" if it holds more than any lock does.  AGAIN 1 says that the same request was sent before and its reply was
-- lost: then an absent key is as good as one that was broken.
-- Returns 1 if it was broken, 0 if the key holds something else, -1 if it is absent.
local LARGEST = 65536 -- a key of more bytes is no lock; to read it would hold up the server
local key, expected = KEYS[1], ARGV[1] or ''
local kind = redis.call('TYPE', key).ok
local mark = ''

if kind == 'string' then
  local bytes = redis.pcall('MEMORY', 'USAGE', key) -- an error, where we have no right to ask: GET needs none of it
  mark = type(bytes) == 'number' and bytes > LARGEST and '-' or redis.sha1hex(redis.call('GET', key))
elseif kind ~= 'none' and redis.call('MEMORY', 'USAGE', key) > LARGEST then
  mark = '-'
elseif kind ~= 'none' then
  mark = redis.sha1hex(string.sub(redis.call('DUMP', key), 1, -11)) -- without the server's version and the checksum
end
if expected == '' then
  return mark
end
if kind == 'none' then
  redis.call('PEXPIRE', key, 1) -- does nothing, but a replica that lacks the key refuses it instead of misleading us
  return ARGV[2] == '1' and 1 or -1
end
return mark == expected and redis.call('DEL', key) or 0
