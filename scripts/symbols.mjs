/**
 * Finds the versions of the libraries that a binary needs, and whether they exceed the versions that the
 * package may require. It reads them from the binary itself (ELF, .gnu.version_r), so that no program for the
 * binary's processor is needed. prepack.mjs and test/portable/main.mjs use this file.
 *
 *   node scripts/symbols.mjs FILE ...     prints them; exit code 1 when a file needs too much
 */
import { readFileSync } from 'node:fs';

/**
 * Node 20 and later need glibc 2.28 (see Node's BUILDING.md). libibverbs has ibv_query_gid_table() from
 * rdma-core 32 on, which is version 1.11.
 */
export const NEWEST = {
  GLIBC: '2.28',
  GLIBCXX: '',
  CXXABI: '',
  GCC: '4.2.0',
  IBVERBS: '1.11',
  RDMACM: '1.2',
};
/** The libraries that a binary may require by name. libstdc++ is linked statically. */
const LIBRARIES =
  /^(libc\.so\.6|libm\.so\.6|libdl\.so\.2|libpthread\.so\.0|ld-linux-[\w-]+\.so\.\d|libibverbs\.so\.1|librdmacm\.so\.1)$/;
const SECTION = { versions: 0x6ffffffe, dynamic: 6 };
const DT_NEEDED = 1;

const compare = (a, b) => a.localeCompare(b, 'en', { numeric: true });

/** Returns the sections of one type in a 64-bit little-endian ELF file, each with its string table. */
function sections(file, type) {
  const at = Number(file.readBigUInt64LE(0x28));
  const size = file.readUInt16LE(0x3a);
  const header = (index) => file.subarray(at + index * size, at + (index + 1) * size);
  const content = (head) => {
    const from = Number(head.readBigUInt64LE(0x18));
    return file.subarray(from, from + Number(head.readBigUInt64LE(0x20)));
  };
  const all = Array.from({ length: file.readUInt16LE(0x3c) }, (_, index) => header(index));
  return all
    .filter((head) => head.readUInt32LE(4) === type)
    .map((head) => ({ bytes: content(head), text: content(header(head.readUInt32LE(0x28))) }));
}

const stringAt = (text, at) => text.toString('latin1', at, text.indexOf(0, at));

/** Returns the needed versions, oldest first, by the name of their set, such as GLIBC. */
export function neededVersions(path) {
  const found = new Map();
  for (const { bytes, text } of sections(readFileSync(path), SECTION.versions)) {
    for (let need = 0, next = -1; next !== 0; need += next) {
      next = bytes.readUInt32LE(need + 12);
      let at = need + bytes.readUInt32LE(need + 8);
      for (let left = bytes.readUInt16LE(need + 2); left > 0; left -= 1) {
        const [, set, version] = /^(.*?)_?([\d.]*)$/.exec(stringAt(text, bytes.readUInt32LE(at + 8)));
        found.set(set, [...(found.get(set) ?? []), version].sort(compare));
        at += bytes.readUInt32LE(at + 12);
      }
    }
  }
  return found;
}

/** Returns the shared libraries with which the binary is linked. */
export function neededLibraries(path) {
  return sections(readFileSync(path), SECTION.dynamic).flatMap(({ bytes, text }) => {
    const names = [];
    for (let at = 0; at < bytes.length; at += 16) {
      if (bytes.readBigInt64LE(at) === BigInt(DT_NEEDED))
        names.push(stringAt(text, Number(bytes.readBigUInt64LE(at + 8))));
    }
    return names;
  });
}

/**
 * Returns the requirements of the binary that exceed what the package may require. The list is empty if the
 * binary has no such requirement.
 */
export function tooMuch(path) {
  const versions = [...neededVersions(path)].flatMap(([set, needed]) =>
    needed
      .filter((version) => NEWEST[set] === undefined || compare(version, NEWEST[set]) > 0)
      .map((version) => `${set}_${version}${NEWEST[set] ? `, newer than ${NEWEST[set]}` : ''}`),
  );
  const libraries = neededLibraries(path).filter((name) => !LIBRARIES.test(name));
  return [...versions, ...libraries.map((name) => `the library ${name}`)];
}

if (process.argv[1] === import.meta.filename) {
  for (const path of process.argv.slice(2)) {
    const versions = [...neededVersions(path)].map(([set, needed]) => `${set}_${needed.at(-1)}`);
    console.log(`${path}: ${versions.join(', ')}; ${neededLibraries(path).join(', ')}`);
    for (const what of tooMuch(path)) {
      console.log(`${path}: needs ${what}`);
      process.exitCode = 1;
    }
  }
}
