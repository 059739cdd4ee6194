-- SPDX-License-Identifier: MIT
--
-- Acquire the lock KEYS[1] for a token, atomically: the key never exists without an expiry, and nothing is changed if
-- another token holds it.  A token that was released ("gone") acquires nothing any more, however late the request is.
--
--   redis-cli --eval acquire.lua KEY {KEY}:dlock {KEY}:dlock:holds {KEY}:dlock:wake {KEY}:dlock:waiting \
--       {KEY}:dlock:history , \
--       TOKEN TTL_MS CANDIDATE_US OWNER LABEL GUARD_S NODE HANDOFF WAITER WAIT_MS TICKET WAITED_MS HISTORY MOST \
--       REPLACE
--
-- CANDIDATE_US is the time of day of the client in microseconds, its proposal for the fence.
-- GUARD_S is the restart guard: a server that has been up for less than GUARD_S seconds, or -GUARD_S, grants nothing,
-- not even in exchange for a handoff token, since its data may be from before a restart.  0 means no guard.  If the
-- server refuses INFO, its uptime is unknown: the request fails, or if GUARD_S is negative, it is granted without
-- guard.
-- NODE is the number of this node in the list of the caller; it is recorded with the grant.  If TOKEN holds KEY
-- already, the same NODE means that the request was sent again, and it is granted as before; another NODE means that
-- two nodes of the caller are this server, which has one vote.
-- HANDOFF is the handoff token, the released token that the caller received from the wake list: if KEY still holds it,
-- and it was released on this node, too, TOKEN replaces it.
-- WAITER is the name of a caller that waits if it is refused: it is recorded for WAIT_MS, so that a release hands the
-- lock over, and gets a ticket, unless it passes the TICKET that it has.  If WAIT_MS is 0, it is not recorded: it waits
-- for a slot (slots.lua), or only replaces.
-- HISTORY is how many holders the history keeps, this one included (history.lua); 0 adds nothing to it.  WAITED_MS is
-- how long the caller has waited.
-- MOST, if it is not 0: a WAITER that comes when so many wait already is not recorded.
-- REPLACE is given by a caller that replaces the holder: if it is refused, the holder is asked to end, as by ask.lua.
-- The newest of several such callers wins.  Each has a number, REPLACE, which is 0 at first: the node then gives it one
-- that is greater than those before.  If the number of another caller is greater, this one gets {-3, owner of the
-- other}, and nothing is changed.  In exchange for a handoff token it is granted nevertheless, by {1, fence, owner of
-- the other}, since its release wakes the next waiter.  REPLACE -1: the caller does not wait, and gets a number only
-- with the lock.
-- Returns {1, fence} if it was granted; {-1, seconds up} if the guard refused it; {-2, NODE} if it was granted to
-- TOKEN for another NODE; else {0, token of the holder, ms left, handed over?, owner, label, ms held, fence, waiting,
-- type of the key, ticket, waiters before it, kept}.  With REPLACE the number of the caller follows.  If readers share
-- the lock, this number, which is 0 without REPLACE, and the number of holds follow.  The values from owner on are
-- empty if the holder is not dlock.  The ticket is minus the number of waiters if WAITER was not recorded because of
-- MOST.
-- kept is "MS_AGO OPTION" if the command has ended that long ago, and the lock is kept by this option; else "".
local HOUR, HALF_HOUR, MONTH = 3600000, 1800000000, 2592000000
local key, meta, holds, wake, waiting, list = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local token, ttl, candidate, guard = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[6] or 0)
local node, handoff, waiter = ARGV[7] or '1', ARGV[8] or '', ARGV[9] or ''
local wait, ticket = tonumber(ARGV[10] or 0), tonumber(ARGV[11] or 0)
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local field = redis.call('HMGET', meta, 'token', 'gone', 'fence')
local fence = tonumber(field[3] or 0) or 0

-- The metadata is kept for an hour after the lease and after the time of the fence; its expiry is never shortened.
local function keep_facts(life)
  if redis.call('PTTL', meta) < life + HOUR then
    redis.call('PEXPIRE', meta, string.format('%.0f', life + HOUR))
  end
end

-- Complete the entry of the last holder in the history, before a renewal moves the end of its lease, and add this
-- holder, see history.lua.  LTRIM is first: if it is refused, the list does not grow.
local function remember(most, since, stamp)
  local last = redis.call('LINDEX', list, '0') or ''
  local id, past, rest = string.match(last, '^(%S+) %- open %- (%S+ %S+ %S+ )(.*)$')
  if id then -- it was never released
    local ended = math.min(now / 1000 + redis.call('PTTL', list) - MONTH, now / 1000)
    redis.call('LSET', list, '0', string.format('%s %.0f expired - %s%s', id, ended, past, rest))
  end
  if most == 0 then
    return
  end
  past = past or string.match(last, '^%S+ %S+ %S+ %S+ (%S+ %S+ %S+ )') or '- - - '
  redis.call('LTRIM', list, most == 1 and 1 or 0, math.max(most - 2, 0)) -- 1, 0: nothing is left
  redis.call('LPUSH', list, string.format('%s - open - %s%s %s %s %d %d %s%s', token, past, since, ARGV[12], stamp,
    #ARGV[4], #ARGV[5], ARGV[4], ARGV[5]))
  redis.call('PEXPIRE', list, ttl + MONTH)
end

-- The newest caller that replaces is in the metadata: "NUMBER NAME OWNER".
local replace = tonumber(ARGV[15] or '')
local newest, name, by = string.match(replace and redis.call('HGET', meta, 'replace') or '', '^(%d+) (%S+) (.*)$')
local me = string.match(waiter, '^%S*')
local exchange = handoff ~= '' and field[2] == handoff and redis.pcall('GET', key) == handoff
if replace and name == me then
  replace = math.max(replace, tonumber(newest))
end
local older = replace and replace > 0 and replace < tonumber(newest or 0)
if older and not exchange and field[1] ~= token then
  return {-3, by}
end

-- Become the newest.
local function succeed()
  if replace <= 0 then
    replace = math.max(tonumber(newest or 0) + 1, now)
  end
  redis.call('HSET', meta, 'replace', string.format('%.0f %s %s', replace, me, ARGV[4]))
  keep_facts(wait)
end

if guard ~= 0 then
  local info = redis.pcall('INFO', 'server')
  if type(info) == 'table' and guard > 0 then
    local text = string.gsub(info.err, '^.*Unknown .-command', 'NOINFO unknown')
    return {err = text}
  end
  local up = type(info) == 'string' and tonumber(string.match(info, 'uptime_in_seconds:(%-?%d+)')) or math.huge
  if up < math.abs(guard) and (exchange or redis.call('EXISTS', key) == 0) then
    return {-1, up}
  end
end

local granted = field[2] ~= token and redis.call('SET', key, token, 'NX', 'PX', ARGV[2])
if not granted and exchange then
  granted = redis.call('SET', key, token, 'PX', ARGV[2])
end
if granted then
  fence = math.max(fence + 1, math.min(candidate, now + HALF_HOUR), now - HALF_HOUR)
  local since, stamp = string.format('%.0f', now / 1000), string.format('%.0f', fence)
  redis.call('DEL', holds)
  redis.call('HSET', meta, 'token', token, 'owner', ARGV[4], 'label', ARGV[5], 'ttl', ARGV[2],
    'node', node, 'since', since, 'fence', stamp)
  keep_facts(math.max((fence - now) / 1000, ttl))
  if handoff ~= '' and redis.pcall('LINDEX', wake, 0) == handoff then
    redis.call('DEL', wake)
  end
  if waiter ~= '' then
    redis.pcall('ZREM', waiting, waiter)
    if ticket > (tonumber(redis.call('HMGET', meta, 'served')[1] or 0) or 0) then
      redis.call('HSET', meta, 'served', ARGV[11])
    end
  end
  if replace and not older then
    pcall(succeed)
  end
  pcall(remember, older and 0 or tonumber(ARGV[13] or 0), since, stamp) -- one that gives way runs nothing
  return {1, fence, older and by or nil}
end
local owner, label, since, served, of_node, keep, last,
  asked = unpack(redis.call('HMGET', meta, 'owner', 'label', 'since', 'served', 'node', 'keep', 'ticket', 'asked'))
served = tonumber(served or 0) or 0
local kind = redis.call('TYPE', key).ok
local holder = kind == 'string' and redis.call('GET', key) or ''
local left = redis.call('PTTL', key)
if holder == token and field[2] ~= token then
  redis.call('PEXPIRE', key, math.max(left, 1)) -- changes nothing, but is a write, which WAIT counts
  return of_node == node and {1, fence, older and by or nil} or {-2, tonumber(of_node or 0) or 0}
end

-- A server without free memory refuses this; the waiter then has no handoff.  The score is the time until which the
-- entry is valid, in whole milliseconds, and the ticket behind the point: history.lua lists the waiters in that order.
local function note_waiter()
  if ticket == 0 then
    ticket = redis.call('HINCRBY', meta, 'ticket', 1)
  end
  keep_facts(wait)
  redis.call('ZREMRANGEBYSCORE', waiting, '-inf', string.format('%.0f', now / 1000))
  redis.call('ZADD', waiting, string.format('%.6f', math.floor(now / 1000) + wait + ticket % 2048 / 2048), waiter)
  if redis.call('PTTL', waiting) < wait then
    redis.call('PEXPIRE', waiting, wait)
  end
end

local stamp = string.format('%.0f', now / 1000)
local function count_waiters()
  return tonumber(redis.pcall('ZCOUNT', waiting, stamp, '+inf')) or 0
end

-- The number of waiters before this one, at most.  If some have given up, the tickets of the others tell, see
-- history.lua; if very many wait, these are not read.
local function count_before(waiters)
  local before, found = math.max(ticket - served - 1, 0), {}
  last = math.max(tonumber(last or 0) or 0, ticket)
  if before > 0 and last - served > waiters and waiters <= 100 then
    before, found = 0, redis.pcall('ZRANGEBYSCORE', waiting, stamp, '+inf', 'WITHSCORES')
  end
  for i = 2, #found, 2 do
    before = before + ((last - math.floor(found[i] % 1 * 2048 + 0.5)) % 2048 > last - ticket and 1 or 0)
  end
  return math.min(before, math.max(waiters - 1, 0))
end

local most = tonumber(ARGV[14] or 0)
if waiter ~= '' and wait > 0 then
  if most > 0 and ticket == 0 and count_waiters() >= most and not redis.call('ZSCORE', waiting, waiter) then
    ticket = -count_waiters()
  else
    pcall(note_waiter)
  end
end
if replace and not older and replace >= 0 and ticket >= 0 then
  pcall(succeed)
end
if replace and ticket >= 0 and holder == field[1] and holder ~= field[2]
  and string.match(asked or '', '^%S*') ~= holder then
  redis.pcall('HSET', meta, 'asked', string.format('%s %s %s', holder, stamp, ARGV[4]))
end
local waiters = count_waiters()
local before = count_before(waiters)
if holder ~= field[1] then
  return {0, string.sub(holder, 1, 64), left, 0, '', '', -1, 0, waiters, kind, ticket, before, '', replace}
end
local who, ended, why = string.match(keep or '', '^(%S+) %d+ (%d+) (%S+)$')
local kept = who == holder and field[2] == holder and
  string.format('%.0f %s', math.max(now / 1000 - ended, 0), why) or ''
local readers -- only the token of a reader has one of these characters at its end
if string.find(holder, '[BRhx]', 22) and holder ~= field[2] then
  readers = math.max(tonumber(redis.pcall('ZCOUNT', holds, stamp, '+inf')) or 0, 1)
end
return {0, holder, left, field[2] == holder and 1 or 0, owner or '', label or '',
  math.max(now / 1000 - (tonumber(since or 0) or 0), 0), fence, waiters, kind, ticket, before, kept,
  replace or (readers and 0), readers}
