-- SPDX-License-Identifier: MIT
--
-- Read the history of the lock KEYS[1], and who waits for it, without changing anything.
--
--   redis-cli --eval history.lua KEY {KEY}:dlock:waiting {KEY}:dlock:history ,
--
-- The history is a list with an entry for each holder, the newest first.  acquire.lua adds it, with the outcome "open".
-- release.lua, or the next acquire.lua, completes it; undo.lua removes that of a failed attempt.  The list expires 30
-- days after the last lease: the lease of an open entry ends, or ended, 30 days before that.  The words of an entry:
--
--   token, end, outcome, exit status (or minus the signal), then the time of the last success, the time and the exit
--   status of the last command, as of the end of this entry, then start, milliseconds waited, fence, length of the
--   owner, length of the label; then the owner, the label, and who broke the lock, without blanks between them
--
-- Times are milliseconds of the day of this server, "-" is unknown.  The last success and the last command are in every
-- entry, so that they outlive the entries of their own.
-- Returns {now, token of the holder, ms until the list expires, {entries}, {waiters}}.
local MOST, WAITERS = 256, 100
local key, waiting, history = KEYS[1], KEYS[2], KEYS[3]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function texts_of(items)
  local texts = {}
  for i, item in ipairs(items) do
    texts[i] = string.sub(item, 1, 1400)
  end
  return texts
end

local holder = redis.call('TYPE', key).ok == 'string' and redis.call('GET', key) or ''
return {now, string.sub(holder, 1, 64), redis.call('PTTL', history),
  texts_of(redis.call('LRANGE', history, 0, MOST - 1)),
  texts_of(redis.pcall('ZRANGEBYSCORE', waiting, string.format('%.0f', now), '+inf', 'LIMIT', 0, WAITERS))}
