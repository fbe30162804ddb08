/**
 * Removes private data from a report before it is written: names of the host and of the user, home
 * directories, and addresses of every kind. Each address is replaced by a name of its own, so that a reader
 * still recognises the same address in two places. Only report.ts uses this file.
 */
import { isIPv4, isIPv6 } from 'node:net';
import { homedir, hostname, userInfo } from 'node:os';

/** Words that must not appear in a report. */
interface Private {
  readonly hostNames: readonly string[];
  readonly users: readonly string[];
  readonly homes: readonly string[];
}

/** Names that every machine has, and that are therefore not private. */
const COMMON = new Set(['localhost', 'root', 'node', 'nobody', '']);

function orNothing(get: () => string): string {
  try {
    return get();
  } catch {
    return ''; // the user has no entry in the system's list
  }
}

/** Returns the private words of this machine: names of its host and its user, and home directories. */
export function privateHere(env: NodeJS.ProcessEnv = process.env): Private {
  const full = hostname();
  const { HOSTNAME = '', USER = '', LOGNAME = '', SUDO_USER = '', HOME = '' } = env;
  const names = [full, HOSTNAME].flatMap((name) => [name, name.split('.')[0]!, domainOf(name)]);
  return {
    hostNames: names,
    users: [orNothing(() => userInfo().username), USER, LOGNAME, SUDO_USER],
    homes: [orNothing(homedir), HOME],
  };
}

/** Returns the domain of a host name: `corp.example` for `node7.corp.example`, or empty without a dot. */
const domainOf = (name: string): string => (name.includes('.') ? name.slice(name.indexOf('.') + 1) : '');

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

const HEX_GROUPS = /(?<![\w:])[0-9a-f]{4}(?::[0-9a-f]{4}){3}(?![\w:])/gi;
const MAC = /(?<![\w:])[0-9a-f]{2}(?:[:-][0-9a-f]{2}){5}(?![\w:])/gi;
/** The hardware address of an InfiniBand interface, which has 20 bytes. */
const LONG_MAC = /(?<![\w:])[0-9a-f]{2}(?::[0-9a-f]{2}){19}(?![\w:])/gi;
const HEX_GUID = /\b0x[0-9a-f]{16}\b/gi;
const MAYBE_IPV6 = /(?<![\w:.])[0-9a-f]*:[0-9a-f:.]*:[0-9a-f:.]*(?:%\w+)?(?![\w:])/gi;
const MAYBE_IPV4 = /(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.])/g;
const HOME_FOLDER = /\/(home|Users)\/[^/\s'"`:;,)]+/g;

export class Masking {
  readonly #names = new Map<string, string>();
  readonly #words: readonly (readonly [RegExp, string])[];

  constructor(secret: Private) {
    const forms = (words: readonly string[], mask: string): (readonly [string, string])[] =>
      words.filter((word) => !COMMON.has(word) && word !== '/').map((word) => [word, mask] as const);
    // Longer words come first, because a word may be a part of another one.
    this.#words = [
      ...forms(secret.homes, 'HOME').filter(([home]) => home !== '/root'),
      ...forms(secret.hostNames, 'HOST'),
      ...forms(secret.users, 'USER'),
    ]
      .sort(([a], [b]) => b.length - a.length)
      .map(([word, mask]) => [new RegExp(`(?<![\\w])${escaped(word)}(?![\\w])`, 'gi'), mask] as const);
  }

  /** Returns the text with all private data replaced. */
  text(text: string): string {
    let masked = text;
    for (const [word, mask] of this.#words) masked = masked.replace(word, mask);
    return masked
      .replace(HOME_FOLDER, '/$1/USER')
      .replace(LONG_MAC, (mac) => this.#named('mac', mac))
      .replace(MAC, (mac) => this.#named('mac', mac))
      .replace(HEX_GROUPS, (guid) => this.#named('guid', guid))
      .replace(HEX_GUID, (guid) => this.#named('guid', guid))
      .replace(MAYBE_IPV6, (found) => this.#ipv6(found))
      .replace(MAYBE_IPV4, (found) => this.#ipv4(found));
  }

  #ipv6(found: string): string {
    const [address = ''] = found.split('%');
    const [, trailing = ''] = /([:.]*)$/.exec(address) ?? [];
    // A full stop behind an address belongs to the sentence.
    const bare = isIPv6(address) ? address : address.slice(0, address.length - trailing.length);
    if (!isIPv6(bare) || /^[:0]*1?$/.test(bare)) return found;
    const kind = /^fe[89ab]/i.test(bare) ? 'ip6-link-local' : 'ip6';
    return this.#named(kind, bare.toLowerCase()) + found.slice(bare.length);
  }

  #ipv4(found: string): string {
    if (!isIPv4(found) || found === '0.0.0.0' || found.startsWith('127.')) return found;
    return this.#named('ip4', found);
  }

  #named(kind: string, secret: string): string {
    const key = `${kind} ${secret.toLowerCase()}`;
    const known = this.#names.get(key);
    if (known !== undefined) return known;
    const count = [...this.#names.keys()].filter((each) => each.startsWith(`${kind} `)).length;
    const name = `${kind}-${count + 1}`;
    this.#names.set(key, name);
    return name;
  }
}
