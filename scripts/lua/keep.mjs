// Writes the Lua that turns a limit into a list and back: what is kept between calls. Made from the types of the fields, so
// that none is forgotten; what cannot be kept fails the build.

/** What is not kept but given anew, by where it stands. */
const GIVEN = {
  'AdaptiveRate.settings': 'settings',
  'AdaptiveRate.rules': 'RULES',
  'Blockades.settings': 'settings',
  'Blockades.random': 'random',
  'Blockades.interval': 'RULES.probeInterval',
  'Blockade.interval': 'RULES.probeInterval',
};
/** Of what class it is where its type says less. */
const MADE_OF = { 'InFlight.watch': 'PlacesEvidence' };
/** Long, and rarely looked at: taken apart when somebody does, by an index (not by `of`, nor asking how long it is). */
const LAZY = ['SendAccount.counts', 'Changes.sums'];
const LISTS = ['Float32Array', 'Uint16Array'];
/** Two of a class are one thing each; of any other there is one, or two owners would share it and drift apart. */
const OWNED_TWICE = ['SendAccount', 'Changes', 'Evidence', 'CutState'];

export function writeKeeper(ts, { checker, nameOf, classNamed }, rootClass) {
  const owners = new Map();
  const functions = [];

  const fieldsOf = (type) =>
    checker.getPropertiesOfType(type).flatMap((property) => {
      const declaration = property.valueDeclaration;
      const isField = ts.isPropertyDeclaration(declaration) || ts.isPropertySignature(declaration);
      if (!isField) return [];
      const name = declaration.name.text.replace('#', '');
      const key = ts.isPrivateIdentifier(declaration.name) ? `p_${name}` : name;
      return {
        place: `${type.symbol.name}.${name}`,
        key,
        type: checker.getTypeOfSymbolAtLocation(property, declaration),
      };
    });

  const own = (type, place) => {
    const name = type.symbol.name;
    if (name.startsWith('__')) return;
    const places = [...(owners.get(name) ?? []), place];
    owners.set(name, places);
    const isShared = places.length > 1 && !OWNED_TWICE.includes(name);
    if (isShared) throw new Error(`is it shared? ${name}: ${places.join(', ')}`);
  };

  /** As a table of its own, by two functions. Returns their name. */
  const separate = (type, place) => {
    const name = type.symbol.name.startsWith('__') ? place.replace('.', '_') : type.symbol.name;
    const { before, items, made } = takeApart(type);
    functions.push(
      `local function write${name}(o)\n${before.join('\n')}\nreturn {${items.join(', ')}}\nend`,
      `local function read${name}(v)\nreturn ${made}\nend`,
    );
    return name;
  };

  /** What makes a list of the object `o`, and the object of the list `v`; the objects in it that it always has are part of the list. */
  const takeApart = (type) => {
    const before = [];
    const items = [];
    const add = (item) => {
      items.push(item);
      return `v[${items.length}]`;
    };
    const visit = (object, path) => {
      const parts = fieldsOf(object).map(({ place, key, type: declared }) => {
        if (GIVEN[place] !== undefined) return `${key} = ${GIVEN[place]}`;
        const made = MADE_OF[place];
        const whole = made === undefined ? declared : checker.getDeclaredTypeOfSymbol(classNamed(made));
        const fieldType = checker.getNonNullableType(whole);
        const keep = fieldType === whole ? keepField : keepOptional;
        return `${key} = ${keep(fieldType, `${path}.${key}`, place)}`;
      });
      const made = `{${parts.join(', ')}}`;
      const isClass = object.isClass() || object.target?.isClass();
      return isClass ? `setmetatable(${made}, ${nameOf(object.symbol)}.prototype)` : made;
    };
    const keepField = (type, value, place) => {
      const name = type.symbol?.name;
      if (LAZY.includes(place)) return `unpackLater(${add(`packAgain(${value})`)})`;
      if (isScalar(ts, type) || LISTS.includes(name)) return add(value);
      if (checker.isArrayType(type)) {
        const [element] = checker.getTypeArguments(type);
        if (isScalar(ts, element)) return add(value);
        own(element, place);
        const each = separate(element, place);
        return `mapList(${add(`mapList(${value}, write${each})`)}, read${each})`;
      }
      checkObject(ts, type, place);
      own(type, place);
      const local = `o${before.length + 1}`;
      before.push(`local ${local} = ${value}`);
      return visit(type, local);
    };
    const keepOptional = (type, value, place) => {
      if (type.flags & ts.TypeFlags.BooleanLike) throw new Error(`false is kept for undefined: ${place}`);
      if (isScalar(ts, type) || LISTS.includes(type.symbol?.name)) return `${add(`${value} or false`)} or nil`;
      checkObject(ts, type, place);
      own(type, place);
      const each = separate(type, place);
      const kept = add(`${value} and write${each}(${value}) or false`);
      return `${kept} and read${each}(${kept}) or nil`;
    };
    const made = visit(type, 'o');
    return { before, items, made };
  };

  separate(checker.getDeclaredTypeOfSymbol(classNamed(rootClass)), rootClass);
  return functions.join('\n');
}

function isScalar(ts, type) {
  const flags = ts.TypeFlags.NumberLike | ts.TypeFlags.StringLike | ts.TypeFlags.BooleanLike;
  return type.isUnion() ? type.types.every((each) => each.flags & flags) : Boolean(type.flags & flags);
}

function checkObject(ts, type, place) {
  const isObject = type.flags & ts.TypeFlags.Object && !type.isUnion() && type.getCallSignatures().length === 0;
  if (!isObject) throw new Error(`not kept: ${place}`);
}
