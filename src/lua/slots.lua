-- SPDX-License-Identifier: MIT
--
-- Look at the slots of a KEY, and add an entry for the caller to their common set of waiters, in one step: the entry is
-- added only where all slots are held, so each of their releases here comes later, and sees it.
--
--   redis-cli --eval slots.lua {KEY}:slots:dlock:waiting {KEY}:slot-1 {KEY}:slot-1:dlock {KEY}:slot-2 ... , \
--       WAITER WAIT_MS MOST
--
-- WAITER is the name of a caller that waits, recorded for WAIT_MS; "" for one that only looks.  MOST: see acquire.lua.
-- Returns, for each slot, what acquire.lua returns for a lock that is held: {0, token of the holder, ms left, handed
-- over?, owner, label, ms held, fence, waiting, type of the key, ticket, before, kept}.  The type is "none" if the slot
-- is free.  Waiters for slots have no tickets: ticket is 0, or minus the number of waiters if WAITER was not recorded
-- because of MOST.  before is the number of those who have waited for longer than WAITER; 0 if very many wait.
local waiting, waiter, wait, most = KEYS[1], ARGV[1] or '', tonumber(ARGV[2] or 0), tonumber(ARGV[3] or 0)
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local stamp = string.format('%.0f', now)
local slots, free = {}, false

local waiters = tonumber(redis.pcall('ZCOUNT', waiting, stamp, '+inf')) or 0
local crowded = waiter ~= '' and most > 0 and waiters >= most and not redis.call('ZSCORE', waiting, waiter)
local ticket, before = crowded and -waiters or 0, 0
local function waits_since(name)
  return tonumber(string.match(name, '^%S+ (%d+)')) or 0
end
for _, name in ipairs(waiter ~= '' and waiters <= 100 and redis.pcall('ZRANGEBYSCORE', waiting, stamp, '+inf') or {}) do
  before = before + (waits_since(name) < waits_since(waiter) and 1 or 0)
end

local function read(key, meta)
  local holder, kind = redis.pcall('GET', key), 'string'
  if type(holder) == 'table' then -- WRONGTYPE: not a lock of dlock; other errors are returned
    if not string.find(holder.err, 'WRONGTYPE', 1, true) then
      return holder
    end
    holder, kind = '', redis.call('TYPE', key).ok
  end
  if not holder then
    free = true
    return {0, '', -2, 0, '', '', -1, 0, waiters, 'none', ticket, before, ''}
  end
  local left = redis.call('PTTL', key)
  local field = redis.call('HMGET', meta, 'token', 'gone', 'owner', 'label', 'since', 'fence', 'keep')
  if holder ~= field[1] then
    return {0, string.sub(holder, 1, 64), left, 0, '', '', -1, 0, waiters, kind, ticket, before, ''}
  end
  local who, ended, why = string.match(field[7] or '', '^(%S+) %d+ (%d+) (%S+)$')
  local kept = who == holder and field[2] == holder and string.format('%.0f %s', math.max(now - ended, 0), why) or ''
  return {0, holder, left, field[2] == holder and 1 or 0, field[3] or '', field[4] or '',
    math.max(now - (tonumber(field[5] or 0) or 0), 0), tonumber(field[6] or 0) or 0, waiters, kind, ticket, before, kept}
end

-- A server without free memory refuses this; the waiter then has no handoff.
local function note_waiter()
  redis.call('ZREMRANGEBYSCORE', waiting, '-inf', stamp)
  redis.call('ZADD', waiting, string.format('%.0f', now + wait), waiter)
  if redis.call('PTTL', waiting) < wait then
    redis.call('PEXPIRE', waiting, wait)
  end
end

for i = 2, #KEYS, 2 do
  local slot = read(KEYS[i], KEYS[i + 1])
  if slot.err then
    return slot
  end
  slots[#slots + 1] = slot
end
if not free and waiter ~= '' and not crowded then
  pcall(note_waiter)
end
return slots
