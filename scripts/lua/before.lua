-- What the translated code takes for given.
local math_floor, math_max, math_min, math_huge = math.floor, math.max, math.min, math.huge

local function zeros(count)
  local list = {}
  for i = 1, count do list[i] = 0 end
  return list
end

-- What a Float32Array makes of a number: those that count are whole.
local function float32(value)
  if value % 1 == 0 and value < 16777216 and value > -16777216 then return value end
  return (struct.unpack('<f', struct.pack('<f', value)))
end

local function uint16(value)
  return math_floor(value) % 65536
end

-- An assignment leaves out what is nil.
local function unset(object, key)
  object[key] = nil
  return object
end
