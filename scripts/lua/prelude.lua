-- Functions that the translated code calls.
local math_floor, math_max, math_min, math_huge = math.floor, math.max, math.min, math.huge

local function zeros(count)
  local list = {}
  for i = 1, count do list[i] = 0 end
  return list
end

-- Rounds a number as a Float32Array does. Most values are small integers, which need no rounding.
local function float32(value)
  if value % 1 == 0 and value < 16777216 and value > -16777216 then return value end
  return (struct.unpack('<f', struct.pack('<f', value)))
end

local function uint16(value)
  return math_floor(value) % 65536
end

-- Removes a key, because Object.assign as TypeScriptToLua has it skips a value of nil.
local function unset(object, key)
  object[key] = nil
  return object
end
