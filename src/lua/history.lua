-- SPDX-License-Identifier: MIT
--
-- Read the history of the lock KEYS[1], and who waits for it, without changing anything.
--
--   redis-cli --eval history.lua KEY {KEY}:dlock {KEY}:dlock:waiting {KEY}:dlock:history , MOST
--
-- MOST, if given: so many entries are enough, and nobody asks who waits.
-- The history is a list with an entry for each holder, the newest first.  acquire.lua adds it, with the outcome "open".
-- release.lua, or the next acquire.lua, completes it; undo.lua removes that of a failed attempt.  The list expires 30
-- days after the last lease: the lease of an open entry ends, or ended, 30 days before that.  The words of an entry:
--
--   token, end, outcome, exit status (or minus the signal), then the time of the last success, the time of the last
--   command and the exit status of its dlock run, as of the end of this entry, then start, milliseconds waited, fence,
--   length of the owner, length of the label; then the owner, the label, and who broke the lock or asked its holder to
--   end, without blanks between them
--
-- Times are milliseconds of the day of this server, "-" is unknown.  The last success and the last command are in every
-- entry, so that they outlive the entries of their own.
-- Returns {now, token of the holder, ms until the list expires, {entries}, {waiters}}.  The waiters are in the order of
-- their tickets, see acquire.lua.
local MOST, WAITERS, TICKETS = tonumber(ARGV[1] or 256), 1000, 2048
local key, meta, waiting, history = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function text_of(item)
  return string.sub(item, 1, 1400)
end

-- A ticket is known by its remainder only: the first in the queue has the one that is farthest behind the last one.
local function queue()
  local last = tonumber(redis.pcall('HGET', meta, 'ticket') or 0) or 0
  local found = redis.pcall('ZRANGEBYSCORE', waiting, string.format('%.0f', now), '+inf', 'WITHSCORES', 'LIMIT', 0, WAITERS)
  local texts, behind = {}, {}
  for i = 1, #found, 2 do
    local text = text_of(found[i])
    texts[#texts + 1] = text
    behind[text] = (last - math.floor(found[i + 1] % 1 * TICKETS + 0.5)) % TICKETS
  end
  table.sort(texts, function(a, b)
    if behind[a] == behind[b] then -- waiters for slots have no tickets: the one that waits longer is first
      return (tonumber(string.match(a, '^%S+ (%d+)')) or 0) < (tonumber(string.match(b, '^%S+ (%d+)')) or 0)
    end
    return behind[a] > behind[b]
  end)
  return texts
end

local entries = redis.call('LRANGE', history, 0, MOST - 1)
for i, entry in ipairs(entries) do
  entries[i] = text_of(entry)
end
local holder = redis.call('TYPE', key).ok == 'string' and redis.call('GET', key) or ''
return {now, string.sub(holder, 1, 64), redis.call('PTTL', history), entries, ARGV[1] and {} or queue()}
