-- SPDX-License-Identifier: MIT
--
-- Give the lock KEYS[1] back, if it is the token's, in one step.  Nobody waits: the key is deleted.  Somebody waits: the
-- key stays for the window with the token, which is now a baton, and the baton goes to the waiter that has been blocked
-- on the wake list for longest; it alone may replace the token (acquire.lua).  With KEEP_MS > 0 the lock stays taken for
-- so long and then expires.  The token is noted as gone, so that a late request can't revive it, and as freed if it was
-- the holder's.
--
--   redis-cli --eval release.lua KEY {KEY}:dlock {KEY}:dlock:wake {KEY}:dlock:waiting , TOKEN KEEP_MS AGAIN NOTE WINDOW_MS
--
-- AGAIN 1 says that the same request was sent before and its reply was lost: then freed is as good as now.  NOTE 1
-- notes also a token that this node has never known, since it may be one of several nodes.
-- Returns 1 if it was released, 0 if another holds it, -1 if nobody does.
local HOUR = 3600000
local key, facts, wake, waiting = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local token, keep, window = ARGV[1], tonumber(ARGV[2] or 0), tonumber(ARGV[5] or 1000)
local fact = redis.pcall('HMGET', facts, 'gone', 'freed', 'token') -- spoilt facts don't keep a lock from being released
local gone = fact[1]
local holder = redis.pcall('GET', key)

if type(holder) == 'table' then -- a key of another type is not ours; other errors are errors
  return string.find(holder.err, 'WRONGTYPE', 1, true) and 0 or holder
end
if fact[2] == token and (ARGV[3] == '1' or holder == token) then
  return ARGV[3] == '1' and 1 or -1
end

-- What can't be noted can't be handed over either: nobody could replace it.
local function note_gone()
  redis.call('HSET', facts, 'gone', token, 'freed', holder == token and token or '')
  if redis.call('PTTL', facts) < keep + window + HOUR then
    redis.call('PEXPIRE', facts, keep + window + HOUR)
  end
end

local function hand_over()
  local time = redis.call('TIME')
  if redis.call('ZCOUNT', waiting, string.format('%.0f', time[1] * 1000 + time[2] / 1000), '+inf') == 0 then
    return false
  end
  redis.call('DEL', wake)
  redis.call('RPUSH', wake, token)
  redis.call('PEXPIRE', wake, window)
  redis.call('PEXPIRE', key, window)
  return true
end

if not holder then
  redis.call('PEXPIRE', key, 1) -- does nothing, but a replica that lacks the key refuses it instead of misleading us
end
local noted = false
if (holder ~= gone or not holder) and (holder == token or fact[3] == token or ARGV[4] == '1') then
  noted = pcall(note_gone)
end
if holder == token and keep > 0 then
  redis.call('PEXPIRE', key, keep)
elseif holder == token then
  local done, handed = false, false
  if noted then
    done, handed = pcall(hand_over)
  end
  if not (done and handed) then
    redis.call('DEL', key)
  end
end
if not holder then
  return -1
end
return holder == token and 1 or 0
