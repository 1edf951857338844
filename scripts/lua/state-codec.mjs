// Generates the Lua functions that convert a limit to a list and back. Redis stores the list between requests. The functions
// are generated from the types of the fields, so that no field is missing; a field that no list can hold fails the build.

/** Fields that are not stored, and the Lua expressions that set them instead. */
const PROVIDED = {
  'AdaptiveRate.settings': 'settings',
  'AdaptiveRate.rules': 'RATE_RULES',
  'InFlightLimiter.rules': 'RATE_RULES',
  'Breaker.settings': 'settings',
  'Breaker.random': 'random',
  'Breaker.interval': 'RATE_RULES.probeInterval',
  'ActiveBlock.interval': 'RATE_RULES.probeInterval',
};
/** The classes of fields whose declared type is not a class. */
const CLASSES = {
  'InFlightLimiter.detector': 'ConcurrencyLimitDetector',
  'InFlightLimiter.latency': 'LatencyLimiter',
};
/** Long lists that are rarely used. They stay packed until an element is accessed by its index; `for … of` and `length` do not unpack them. */
const LAZY = ['SendHistory.counts', 'Changes.sums', 'RequestRecords.numbers'];
const TYPED_ARRAYS = ['Float32Array', 'Uint16Array'];
/** Classes that have several owners, each with an object of its own. An object that two owners share would become two. */
const SEVERAL_OWNERS = [
  'ActiveWeight',
  'SendHistory',
  'ThroughputMeasurement',
  'Changes',
  'MajorityVote',
  'SenderTimes',
  'FailingSenders',
  'RequestRecords',
  'RevertibleRateState',
];

export function generateStateCodec(ts, { checker, nameOf, classNamed }, rootClass) {
  const owners = new Map();
  const functions = [];
  const visited = new Set();

  const fieldsOf = (type) =>
    checker.getPropertiesOfType(type).flatMap((property) => {
      const declaration = property.valueDeclaration;
      const isField = ts.isPropertyDeclaration(declaration) || ts.isPropertySignature(declaration);
      if (!isField) return [];
      const name = declaration.name.text.replace('#', '');
      const key = ts.isPrivateIdentifier(declaration.name) ? `p_${name}` : name;
      const place = `${type.symbol.name}.${name}`;
      visited.add(place);
      return { place, key, type: checker.getTypeOfSymbolAtLocation(property, declaration) };
    });

  const addOwner = (type, place) => {
    const name = type.symbol.name;
    if (name.startsWith('__')) return;
    const places = [...(owners.get(name) ?? []), place];
    owners.set(name, places);
    const isUnexpected = places.length > 1 && !SEVERAL_OWNERS.includes(name);
    if (isUnexpected) throw new Error(`an object may be shared: ${name} in ${places.join(', ')}`);
  };

  /** Generates two functions for a type that has a list of its own. Returns the name that follows `read` and `write`. */
  const addFunctions = (type, place) => {
    const name = type.symbol.name.startsWith('__') ? place.replace('.', '_') : type.symbol.name;
    const { locals, items, expression } = generateBody(type);
    functions.push(
      `local function write${name}(o)\n${locals.join('\n')}\nreturn {${items.join(', ')}}\nend`,
      `local function read${name}(v)\nreturn ${expression}\nend`,
    );
    return name;
  };

  /**
   * Returns the items of the list for the object `o`, and the expression that makes the object from the list `v`. The fields of
   * an object that is always there are items of its owner's list.
   */
  const generateBody = (type) => {
    const locals = [];
    const items = [];
    const addItem = (item) => {
      items.push(item);
      return `v[${items.length}]`;
    };
    const visitObject = (object, path) => {
      const fields = fieldsOf(object).map(({ place, key, type: declared }) => {
        if (PROVIDED[place] !== undefined) return `${key} = ${PROVIDED[place]}`;
        const className = CLASSES[place];
        const whole = className === undefined ? declared : checker.getDeclaredTypeOfSymbol(classNamed(className));
        const fieldType = checker.getNonNullableType(whole);
        const isOptional = checker.getNonNullableType(declared) !== declared;
        const visit = isOptional ? visitOptional : visitField;
        return `${key} = ${visit(fieldType, `${path}.${key}`, place)}`;
      });
      const table = `{${fields.join(', ')}}`;
      const isClass = object.isClass() || object.target?.isClass();
      return isClass ? `setmetatable(${table}, ${nameOf(object.symbol)}.prototype)` : table;
    };
    const visitField = (type, value, place) => {
      if (LAZY.includes(place)) return `unpackLazily(${addItem(`packLazyList(${value})`)})`;
      if (isScalar(ts, type) || TYPED_ARRAYS.includes(type.symbol?.name)) return addItem(value);
      if (checker.isArrayType(type)) {
        const [element] = checker.getTypeArguments(type);
        if (isScalar(ts, element)) return addItem(value);
        addOwner(element, place);
        const name = addFunctions(element, place);
        return `mapList(${addItem(`mapList(${value}, write${name})`)}, read${name})`;
      }
      checkObject(ts, type, place);
      addOwner(type, place);
      const local = `o${locals.length + 1}`;
      locals.push(`local ${local} = ${value}`);
      return visitObject(type, local);
    };
    const visitOptional = (type, value, place) => {
      if (type.flags & ts.TypeFlags.BooleanLike) throw new Error(`false would be stored for undefined: ${place}`);
      if (isScalar(ts, type) || TYPED_ARRAYS.includes(type.symbol?.name)) {
        return `${addItem(`${value} or false`)} or nil`;
      }
      checkObject(ts, type, place);
      addOwner(type, place);
      const name = addFunctions(type, place);
      const item = addItem(`${value} and write${name}(${value}) or false`);
      return `${item} and read${name}(${item}) or nil`;
    };
    const expression = visitObject(type, 'o');
    return { locals, items, expression };
  };

  addFunctions(checker.getDeclaredTypeOfSymbol(classNamed(rootClass)), rootClass);
  checkTables(visited, owners);
  return functions.join('\n');
}

/** An entry under a former name would have no effect. */
function checkTables(visited, owners) {
  const fields = [...Object.keys(PROVIDED), ...Object.keys(CLASSES), ...LAZY].filter((place) => !visited.has(place));
  const classes = SEVERAL_OWNERS.filter((name) => (owners.get(name)?.length ?? 0) < 2);
  const unused = [...fields, ...classes];
  if (unused.length > 0) throw new Error(`state-codec.mjs names what is not there: ${unused.join(', ')}`);
}

function isScalar(ts, type) {
  const flags = ts.TypeFlags.NumberLike | ts.TypeFlags.StringLike | ts.TypeFlags.BooleanLike;
  return type.isUnion() ? type.types.every((each) => each.flags & flags) : Boolean(type.flags & flags);
}

function checkObject(ts, type, place) {
  const isObject = type.flags & ts.TypeFlags.Object && !type.isUnion() && type.getCallSignatures().length === 0;
  if (!isObject) throw new Error(`cannot be stored: ${place}`);
}
