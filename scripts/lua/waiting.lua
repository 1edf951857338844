local clients = {}
for i = 6, #ARGV do clients[i - 5] = ARGV[i] end

-- Both spans' sets in one count: those of the span before, and those of this one that were not among them.
function shelf.noteWaiting(_, client, holder)
  local span = math_floor(now / WAITS_FOR)
  local isOdd = span % 2 == 1
  local this, before = KEYS[isOdd and 5 or 4], KEYS[isOdd and 4 or 5]
  local field = 'h' .. #client .. ':' .. client .. holder
  if tonumber(redis.call('HGET', this, 's')) ~= span then
    redis.call('DEL', this)
    redis.call('HSET', this, 's', span)
    redis.call('PEXPIRE', this, 3 * WAITS_FOR)
  end
  local isBefore = tonumber(redis.call('HGET', before, 's')) == span - 1
  local added = redis.call('HSETNX', this, field, 1)
  if added == 1 then
    redis.call('HINCRBY', this, 'n' .. client, 1)
    if not isBefore or redis.call('HEXISTS', before, field) == 0 then redis.call('HINCRBY', this, 'u' .. client, 1) end
  end
  return (tonumber(redis.call('HGET', this, 'u' .. client)) or 0)
    + (isBefore and tonumber(redis.call('HGET', before, 'n' .. client)) or 0)
end
