-- SPDX-License-Identifier: MIT
--!df flags=allow-undeclared-keys
-- The line above is for Dragonfly: the lists have the names of the waiters, which the caller does not know.
--
-- Invite readers that wait for the lock KEYS[1], if it is shared: each one that waits before all writers gets a word on
-- the list by which it leaves the queue, and tries at once.  It keeps its place.
--
--   redis-cli --eval invite.lua KEY {KEY}:dlock {KEY}:dlock:waiting ,
--
-- Returns how many were invited.
local MOST, TICKETS, LIFE = 1000, 2048, 1000
local key, meta, waiting = KEYS[1], KEYS[2], KEYS[3]
local holder, field = redis.pcall('GET', key), redis.call('HMGET', meta, 'token', 'gone', 'ticket')

local function marked(text)
  return string.match(string.sub(text, 22, 22), '[BRhx]') ~= nil
end

if type(holder) ~= 'string' or holder ~= field[1] or holder == field[2] or not marked(holder) then
  return 0
end
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + time[2] / 1000)
local found = redis.pcall('ZRANGEBYSCORE', waiting, now, '+inf', 'WITHSCORES', 'LIMIT', 0, MOST)
local readers, writer, count = {}, -1, 0

-- A ticket is known by its remainder only, see history.lua: the first one is the farthest behind the last one.
for i = 1, #found, 2 do
  local behind = ((tonumber(field[3] or 0) or 0) - math.floor(found[i + 1] % 1 * TICKETS + 0.5)) % TICKETS
  if marked(found[i]) then
    readers[string.sub(found[i], 1, 22)] = behind
  else
    writer = math.max(writer, behind)
  end
end
for reader, behind in pairs(readers) do
  if behind > writer then
    redis.call('RPUSH', meta .. ':leave:' .. reader, 'try')
    redis.call('PEXPIRE', meta .. ':leave:' .. reader, LIFE)
    count = count + 1
  end
end
return count
