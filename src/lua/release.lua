-- SPDX-License-Identifier: MIT
--
-- Give the lock KEYS[1] back, if it is the token's, in one step.  Nobody waits: the key is deleted.  Somebody waits: the
-- key stays for the window with the token, which is now a baton, and the baton goes to the waiter that has been blocked
-- on the wake list for longest; it alone may replace the token (acquire.lua).  With KEEP_MS > 0 the lock stays taken for
-- so long and then expires.  The token is noted as gone, so that a late request can't revive it, and as freed if it was
-- the holder's.  Where the lock was entered again (renew.lua) only the hold that is named ends, TOKEN or TOKEN.x, and the
-- last one frees the lock.
--
--   redis-cli --eval release.lua KEY {KEY}:dlock {KEY}:dlock:holds {KEY}:dlock:wake {KEY}:dlock:waiting , \
--       TOKEN KEEP_MS AGAIN NOTE WINDOW_MS ALL BATON
--
-- AGAIN 1 says that the same request was sent before and its reply was lost: then freed is as good as now.  NOTE 1
-- notes also a token that this node has never known, since it may be one of several nodes.  ALL 1 ends all holds, however
-- long one of them wanted the lock to stay taken.  BATON is what the lock was taken by: where it was given back only
-- behind our attempt, KEY was left to us, and nobody else would come for it.
-- Returns 1 if it was released, 2 if other holds keep it, 0 if another holds it, -1 if nobody does or this hold had ended.
local HOUR, REMEMBERED = 3600000, 600000
local key, facts, holds, wake, waiting = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local hold, keep, again, window = ARGV[1], tonumber(ARGV[2] or 0), ARGV[3] == '1', tonumber(ARGV[5] or 1000)
local token = string.match(hold, '^[^.]*')
-- Spoilt facts don't keep a lock from being released.
local fact = redis.pcall('HMGET', facts, 'gone', 'freed', 'token', 'keep')
local gone = fact[1]
local holder = redis.pcall('GET', key)
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function ms(n)
  return string.format('%.0f', n)
end

if type(holder) == 'table' then -- a key of another type is not ours; other errors are errors
  return string.find(holder.err, 'WRONGTYPE', 1, true) and 0 or holder
end

local function take_what_was_left()
  redis.call('SET', key, token, 'PX', window)
  redis.call('HSET', facts, 'token', token, 'owner', '', 'label', '')
  redis.call('DEL', holds)
  if redis.pcall('LINDEX', wake, 0) == ARGV[7] then
    redis.call('DEL', wake)
  end
end

if holder and holder == gone and holder == ARGV[7] and hold == token and pcall(take_what_was_left) then
  holder = token
end
if fact[2] == token and (again or holder == token) then
  return again and 1 or -1
end
if not holder then
  redis.call('PEXPIRE', key, 1) -- does nothing, but a replica that lacks the key refuses it instead of misleading us
end

-- Ends this hold.  Returns whether it was one, and whether it was the last.  The set is that of renew.lua.
local function end_hold()
  if hold == token and (ARGV[6] == '1' or redis.call('EXISTS', holds) == 0) then
    return true, true
  end
  redis.call('ZREMRANGEBYSCORE', holds, ms(-now), ms(now))
  local score = tonumber(redis.call('ZSCORE', holds, hold) or 0)
  redis.call('ZREM', holds, hold)
  local others = redis.call('ZCOUNT', holds, ms(now), '+inf')
  redis.pcall('ZADD', holds, ms(-now - REMEMBERED), hold)
  redis.call('PEXPIRE', holds, ms(math.max(redis.call('PTTL', facts), keep + HOUR)))
  if others == 0 then
    return score > 0 or hold == token, score > 0 or hold == token
  end
  return score > 0 or (hold == token and score == 0) or (again and score < 0), false
end

-- Others keep the lock: for as long as their leases last.
local function leave_to_others()
  local last = redis.call('ZREVRANGE', holds, 0, 0, 'WITHSCORES')[2]
  if tonumber(last) - now < redis.call('PTTL', key) then
    redis.call('PEXPIRE', key, ms(last - now))
  end
end

-- What can't be noted can't be handed over either: nobody could replace it.
local function note_gone()
  redis.call('HSET', facts, 'gone', token, 'freed', holder == token and token or '')
  if redis.call('PTTL', facts) < keep + window + HOUR then
    redis.call('PEXPIRE', facts, keep + window + HOUR)
  end
end

local function hand_over()
  if redis.call('ZCOUNT', waiting, now, '+inf') == 0 then
    return false
  end
  redis.call('DEL', wake)
  redis.call('RPUSH', wake, token)
  redis.call('PEXPIRE', wake, window)
  redis.call('PEXPIRE', key, window)
  return true
end

local was, last = hold == token, hold == token
if holder == token or fact[3] == token then
  local fine, a, b = pcall(end_hold)
  if fine then
    was, last = a, b
  end
end
local kept_for, kept_until = string.match(fact[4] or '', '^(%S+) (%d+)$')
if kept_for == token and ARGV[6] ~= '1' then
  keep = math.max(keep, tonumber(kept_until) - now)
end
if holder == token and not last then
  if was and keep > 0 then -- the lock is kept until then, whoever ends it
    redis.pcall('HSET', facts, 'keep', string.format('%s %.0f', token, now + keep))
  elseif was then
    pcall(leave_to_others)
  end
  return was and 2 or -1
end
local noted = false
if last and (holder ~= gone or not holder) and (holder == token or fact[3] == token or ARGV[4] == '1') then
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
