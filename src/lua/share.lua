-- SPDX-License-Identifier: MIT
--
-- Acquire the lock KEYS[1] for a reader, whose token is marked: its last character is B, R, h or x.  A reader that is
-- refused by a shared lock, whose token is marked, may enter it (renew.lua), unless a writer waits before it.
--
--   redis-cli --eval share.lua KEY {KEY}:dlock {KEY}:dlock:holds {KEY}:dlock:wake {KEY}:dlock:waiting \
--       {KEY}:dlock:history , \
--       TOKEN TTL_MS CANDIDATE_US OWNER LABEL GUARD_S NODE HANDOFF WAITER WAIT_MS TICKET WAITED_MS HISTORY MOST
--
-- The keys and arguments are those of acquire.lua, without REPLACE; embed-lua.sh includes it below.
-- Returns what acquire.lua returns.  If readers hold KEY, the value before the number of holds is the number of writers
-- before the caller: of the waiters with an unmarked name and an earlier ticket, or with any if the caller has none.
-- If very many wait, it is 1.
local MOST, TICKETS = 1000, 2048

local function acquire()
  -- include acquire.lua
end

local function marked(text)
  return string.match(string.sub(text, 22, 22), '[BRhx]') ~= nil
end

-- A ticket is known by its remainder only, see history.lua.
local function writers_before(last, now)
  local found = redis.pcall('ZRANGEBYSCORE', KEYS[5], now, '+inf', 'WITHSCORES', 'LIMIT', 0, MOST + 1)
  local behind, own, count = {}, -1, 0
  if #found > 2 * MOST then
    return 1
  end
  for i = 1, #found, 2 do
    local distance = (last - math.floor(found[i + 1] % 1 * TICKETS + 0.5)) % TICKETS
    if found[i] == ARGV[9] then
      own = distance
    elseif not marked(found[i]) then
      behind[#behind + 1] = distance
    end
  end
  for _, distance in ipairs(behind) do
    count = count + (distance > own and 1 or 0)
  end
  return count
end

local reply = acquire()
if not reply[15] then
  return reply
end
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + time[2] / 1000)
reply[14] = writers_before(tonumber(redis.call('HMGET', KEYS[2], 'ticket')[1] or 0) or 0, now)
return reply
