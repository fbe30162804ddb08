/**
 * JSON.parse takes the last of two members with the same name and does not tell; protobuf's JSON wants an
 * error. Called by index.ts with text that JSON.parse has accepted.
 */

const quote = 34;
const backslash = 92;

/** Where the string that begins at `at` ends: behind its closing quote. */
function stringEnd(text: string, at: number): number {
  for (let i = at + 1; ; i++) {
    const char = text.charCodeAt(i);
    if (char === backslash) i++;
    else if (char === quote) return i + 1;
  }
}

/** The first name that an object has twice, undefined when there is none. */
export function duplicateMember(text: string): string | undefined {
  /** The names seen in each object that is open; undefined for an array. */
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
