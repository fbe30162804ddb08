/**
 * Finds duplicate members of JSON objects. JSON.parse silently takes the last of them, but protobuf's JSON
 * mapping requires an error. index.ts calls these functions with text that JSON.parse has accepted.
 */

const quote = 34;
const backslash = 92;

/** Returns the position behind the closing quote of the string that begins at `at`. */
function stringEnd(text: string, at: number): number {
  for (let i = at + 1; ; i++) {
    const char = text.charCodeAt(i);
    if (char === backslash) i++;
    else if (char === quote) return i + 1;
  }
}

/** Returns the first name that an object contains twice, or undefined. */
export function duplicateMember(text: string): string | undefined {
  /** The names seen in each open object; undefined for an array. */
  const open: (Set<string> | undefined)[] = [];
  let names: Set<string> | undefined;
  let atName = false;
  for (let i = 0; i < text.length; i++) {
    switch (text[i]) {
      case '"': {
        const end = stringEnd(text, i);
        if (names !== undefined && atName) {
          const name = JSON.parse(text.slice(i, end)) as string;
          if (names.has(name)) return name;
          names.add(name);
          atName = false;
        }
        i = end - 1;
        break;
      }
      case '{':
      case '[':
        open.push(names);
        names = text[i] === '{' ? new Set() : undefined;
        atName = true;
        break;
      case '}':
      case ']':
        names = open.pop();
        break;
      case ',':
        atName = true;
        break;
    }
  }
  return undefined;
}
