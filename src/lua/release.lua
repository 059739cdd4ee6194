-- SPDX-License-Identifier: MIT
--
-- Give the lock KEYS[1] back, if it is the token's: compare and delete in one step.  With KEEP_MS > 0 it stays taken
-- for so long and then expires.  The token is noted as gone, so that a late request can't revive it, and as freed if it
-- was the holder's.
--
--   redis-cli --eval release.lua KEY {KEY}:dlock , TOKEN KEEP_MS AGAIN NOTE
--
-- AGAIN 1 says that the same request was sent before and its reply was lost: then freed is as good as now.  NOTE 1
-- notes also a token that this node has never known, since it may be one of several nodes.
-- Returns 1 if it was released, 0 if another holds it, -1 if nobody does.
local HOUR = 3600000
local key, facts = KEYS[1], KEYS[2]
local token, keep = ARGV[1], tonumber(ARGV[2] or 0)
local fact = redis.pcall('HMGET', facts, 'gone', 'freed', 'token') -- spoilt facts don't keep a lock from being released
local gone = fact[1]
local holder = redis.pcall('GET', key)

if type(holder) == 'table' then -- a key of another type is not ours; other errors are errors
  return string.find(holder.err, 'WRONGTYPE', 1, true) and 0 or holder
end
if fact[2] == token and (ARGV[3] == '1' or holder == token) then
  return ARGV[3] == '1' and 1 or -1
end
if holder == token and keep > 0 then
  redis.call('PEXPIRE', key, keep)
elseif holder == token then
  redis.call('DEL', key)
elseif not holder then
  redis.call('PEXPIRE', key, 1) -- does nothing, but a replica that lacks the key refuses it instead of misleading us
end
if (holder ~= gone or not holder) and (holder == token or fact[3] == token or ARGV[4] == '1') then
  -- Best effort: with its memory full a server refuses it.
  redis.pcall('HSET', facts, 'gone', token, 'freed', holder == token and token or '')
  if redis.call('PTTL', facts) < keep + HOUR then
    redis.call('PEXPIRE', facts, keep + HOUR)
  end
end
if not holder then
  return -1
end
return holder == token and 1 or 0
