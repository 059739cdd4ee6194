-- SPDX-License-Identifier: MIT
--!df flags=allow-undeclared-keys
-- The line above is for Dragonfly: the lists on which waiters are told that a lock is kept have the names of the
-- waiters, which the caller does not know.  All other keys are in KEYS.
--
-- Release the lock KEYS[1], if TOKEN holds it, in one step.  If nobody waits, the key is deleted.  If somebody waits,
-- the key keeps the token for the window.  The token is then the handoff token, and is pushed to the wake list for
-- the waiter that has been blocked there longest, which alone may replace the token (acquire.lua).  With KEEP_MS > 0
-- the key stays for that time and then expires; the waiters are told.  The token is recorded as gone, so that a late
-- request cannot restore it, and as freed if it held the lock.  If the lock was entered again (renew.lua), only the
-- given hold, TOKEN or TOKEN.x, ends; the last one frees the lock.
--
--   redis-cli --eval release.lua KEY {KEY}:dlock {KEY}:dlock:holds {KEY}:dlock:wake {KEY}:dlock:waiting \
--       {KEY}:dlock:history , \
--       TOKEN KEEP_MS AGAIN NOTE WINDOW_MS ALL HANDOFF OUTCOME KEPT_BY BY
--
-- AGAIN 1 means that the same request was sent before and its reply was lost: "freed" then counts as released now, and
-- so does a release that others have followed since, which "earlier" or the history knows.
-- NOTE 1 also records a token that this node has never seen, since it may be one of several nodes.
-- ALL 1 ends all holds, even if one of them requested a minimum time (KEEP_MS).
-- HANDOFF is the handoff token by which the lock was acquired.  If it was released on this node only after the acquire
-- request of the caller, KEY is reserved for the caller, and nobody else would take it.
-- OUTCOME is recorded in the history (history.lua): a word, and the exit status of the command, or - without one.
-- KEPT_BY is the option that asks for KEEP_MS, for those who find the lock kept.
-- BY is the owner who broke the lock (OUTCOME is then "broken"), or who asked its holder to end ("asked"); else "".
-- Returns 1 if it was released, 2 if other holds keep it, 0 if another token holds it, -1 if it is free or this hold
-- had ended already.
local HOUR, REMEMBERED = 3600000, 600000
local key, meta, holds, wake, waiting, list = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local hold, keep, again, window = ARGV[1], tonumber(ARGV[2] or 0), ARGV[3] == '1', tonumber(ARGV[5] or 1000)
local token = string.match(hold, '^[^.]*')
local why = ARGV[9] or 'min-hold'
-- A lock can be released even if its metadata key has a wrong type.
local field = redis.pcall('HMGET', meta, 'gone', 'freed', 'token', 'keep', 'broken', 'earlier', 'owner')
local gone = field[1]
local holder = redis.pcall('GET', key)
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function ms(n)
  return string.format('%.0f', n)
end

if type(holder) == 'table' then -- WRONGTYPE: not a lock of dlock; other errors are returned
  return string.find(holder.err, 'WRONGTYPE', 1, true) and 0 or holder
end

local function take_what_was_left()
  redis.call('SET', key, token, 'PX', window)
  redis.call('HSET', meta, 'token', token, 'owner', '', 'label', '')
  redis.call('DEL', holds)
  if redis.pcall('LINDEX', wake, 0) == ARGV[7] then
    redis.call('DEL', wake)
  end
end

if holder and holder == gone and holder == ARGV[7] and hold == token and pcall(take_what_was_left) then
  holder = token
end
local breaks = string.find(ARGV[8] or '', '^broken ') ~= nil
local broken = string.match(field[5] or '', '^%S+ (%S+)')
if field[2] == token and (again or holder == token) then
  -- The request whose reply was lost did not release a lock that somebody else has broken since.
  return again and (breaks or broken ~= token) and 1 or -1
end

-- "earlier" has the beginnings of the last four tokens that were freed before the present one, and not broken: enough
-- to know them, and few enough for Redis to store the hash in its compact form.
local function short(of)
  return string.sub(of, 1, 11) .. ' '
end

-- Did the request whose reply was lost free the lock, although others have had it since?
local function was_freed()
  if not breaks and string.find(field[6] or '', short(token), 1, true) then
    return true
  end
  for i = 0, 255 do
    local entry = redis.pcall('LINDEX', list, i)
    local id, word = string.match(type(entry) == 'string' and entry or '', '^(%S+) %S+ (%S+)')
    if not id or id == token then
      return id and word ~= 'open' and word ~= 'expired' and word ~= 'lost' and (word == 'broken') == breaks
    end
  end
end

if again and holder ~= token and was_freed() then
  return 1
end
if not holder then
  redis.call('PEXPIRE', key, 1) -- changes nothing, but fails on a replica, which may lack the key
end

-- Usually there are neither further holds nor waiters, which one call tells.
local siblings = redis.pcall('EXISTS', holds, waiting)

-- Ends this hold.  Returns whether it existed, and whether it was the last one.  The set is described in renew.lua.
local function end_hold()
  if hold == token and (ARGV[6] == '1' or siblings == 0 or redis.call('EXISTS', holds) == 0) then
    return true, true
  end
  redis.call('ZREMRANGEBYSCORE', holds, ms(-now), ms(now))
  local score = tonumber(redis.call('ZSCORE', holds, hold) or 0)
  redis.call('ZREM', holds, hold)
  local others = redis.call('ZCOUNT', holds, ms(now), '+inf')
  redis.pcall('ZADD', holds, ms(-now - REMEMBERED), hold)
  redis.call('PEXPIRE', holds, ms(math.max(redis.call('PTTL', meta), keep + HOUR)))
  if others == 0 then
    return score > 0 or hold == token, score > 0 or hold == token
  end
  return score > 0 or (hold == token and score == 0) or (again and score < 0), false
end

-- Other holds keep the lock for as long as their leases last.
local function leave_to_others()
  local last = redis.call('ZREVRANGE', holds, 0, 0, 'WITHSCORES')[2]
  if tonumber(last) - now < redis.call('PTTL', key) then
    redis.call('PEXPIRE', key, ms(last - now))
  end
end

-- If this fails, the lock is not handed over: no waiter could replace the token.
local function note_gone()
  local earlier = field[6] or ''
  if (field[2] or '') ~= '' and field[2] ~= broken then
    earlier = string.sub(short(field[2]) .. earlier, 1, 48)
  end
  redis.call('HSET', meta, 'gone', token, 'freed', holder == token and token or '', 'earlier', earlier)
  if breaks then
    redis.call('HSET', meta, 'broken', ms(now) .. ' ' .. token .. ' ' .. ARGV[10])
  end
  if redis.call('PTTL', meta) < keep + window + HOUR then
    redis.call('PEXPIRE', meta, keep + window + HOUR)
  end
end

-- Record the outcome in the history, unless the entry is complete: a lock that was broken stays broken.  A lock that
-- has expired was lost by its command; without a command, the time of its end is that of the lease.
local function record()
  local id, success, run, status, rest = string.match(redis.call('LINDEX', list, '0') or '',
    '^(%S+) %- open %- (%S+) (%S+) (%S+) (.*)$')
  local word, code = string.match(ARGV[8] or 'released -', '^(%S+) (%S+)$')
  local ended = ms(now)
  if id ~= token or (holder ~= token and code == '-') then
    return
  end
  word = holder ~= token and 'lost' or word
  if code ~= '-' then
    -- The status is that of dlock; the command may have exited with 0 when it was asked to end.
    run, status = ended, (word == 'lost' or word == 'asked') and '76' or word == 'max-run' and code ~= '-9' and '124' or code
    success = word == 'ran' and code == '0' and run or success
  elseif breaks and field[3] == token and string.find(field[7] or '', ':%d+$') then
    run, status = ended, '76' -- so its dlock run ends, which cannot tell it: the token is gone; acquire has a suffix
  end
  redis.call('LSET', list, '0', string.format('%s %s %s %s %s %s %s %s%s', id, ended, word, code, success, run, status,
    rest, ARGV[10] or ''))
end

local function hand_over()
  if siblings == 0 or redis.call('ZCOUNT', waiting, now, '+inf') == 0 then
    return false
  end
  redis.call('DEL', wake)
  redis.call('RPUSH', wake, token)
  redis.call('PEXPIRE', wake, window)
  redis.call('PEXPIRE', key, window)
  return true
end

-- No waiter may take a lock that is kept, but each may want to know: a word on the list by which it leaves the queue.
-- Those who wait for a slot stay where they are: they may get another one.
local function tell_waiters()
  if waiting ~= meta .. ':waiting' then
    return
  end
  for _, waiter in ipairs(redis.call('ZRANGEBYSCORE', waiting, now, '+inf')) do
    local leave = meta .. ':leave:' .. string.match(waiter, '^%S*')
    redis.call('RPUSH', leave, 'kept')
    redis.call('PEXPIRE', leave, window)
  end
end

local was, last = hold == token, hold == token
if holder == token or field[3] == token then
  local fine, a, b = pcall(end_hold)
  if fine then
    was, last = a, b
  end
end
local kept_for, kept_until = string.match(field[4] or '', '^(%S+) (%d+)')
if kept_for == token and ARGV[6] ~= '1' then
  keep = math.max(keep, tonumber(kept_until) - now)
end
if holder == token and not last then
  if was and keep > 0 then -- the lock is kept until then, whichever hold ends last
    redis.pcall('HSET', meta, 'keep', string.format('%s %.0f %.0f %s', token, now + keep, now, why))
  elseif was then
    pcall(leave_to_others)
  end
  return was and 2 or -1
end
local noted = false
if last and (holder ~= gone or not holder) and (holder == token or field[3] == token or ARGV[4] == '1') then
  noted = pcall(note_gone)
end
if last then
  pcall(record)
end
if holder == token and keep > 0 then
  redis.pcall('HSET', meta, 'keep', string.format('%s %.0f %.0f %s', token, now + keep, now, why))
  if siblings ~= 0 then
    pcall(tell_waiters)
  end
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
