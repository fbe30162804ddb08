/**
 * What servers and channels are told about TLS: certificates and keys, given once or by a function that is
 * asked again for each connection, and those of files. Read by tls-server.ts and tls-client.ts.
 */
import type { X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { createSecureContext, type PeerCertificate, type SecureContext } from 'node:tls';
import { textOf } from '../../core/foreign.ts';
import { checkedOptions, checkNames, type OptionRules } from '../../core/options.ts';
import type { Warn } from '../../core/warnings.ts';
import { bufferOf, buffersOf, type Called, checkPem, type Pem, pemFault } from './pem.ts';
import { checkPskAlone, type PskKeys, readPsk } from './psk.ts';

export type { Pem };

/** Named as in `node:tls`. */
export interface TlsMaterial {
  /** This side's certificate, and those between it and an authority that the other side trusts. */
  cert?: Pem;
  /** Its private key. */
  key?: Pem;
  /** Of the key. */
  passphrase?: string;
  /**
   * The authorities that the other side's certificate may be signed by. Default on a channel: those that Node
   * trusts.
   */
  ca?: Pem | readonly Pem[];
  /** Certificates that are revoked, as lists of their authorities. */
  crl?: Pem | readonly Pem[];
  /**
   * Instead of all that: secrets that both sides share, by name; of a channel the one that it uses. Never in
   * the command line, nor in the source.
   */
  psk?: PskKeys;
}

export interface ServerTls extends TlsMaterial {
  /** Asks clients for a certificate. Default: when there is a `ca`. */
  requestCert?: boolean;
  /**
   * Refuses clients without a certificate that is trusted. Default: true; with false their `identity` is
   * undefined.
   */
  rejectUnauthorized?: boolean;
  /**
   * Returns what is wrong with a client's certificate that is trusted otherwise, undefined for nothing.
   * `issuerCertificate` leads to what was sent behind it.
   */
  checkClientIdentity?: (certificate: X509Certificate) => Error | undefined;
}

export interface ChannelTls extends TlsMaterial {
  /** The name that the server's certificate must have. Default: the host of the address. */
  servername?: string;
  /**
   * What the server's `identity` must be, one of them, instead of its having that name: such as a SPIFFE id.
   */
  identity?: string | readonly string[];
  /**
   * As in `node:tls`: returns what is wrong with the server's certificate, undefined for nothing. In place of
   * the check of its name.
   */
  checkServerIdentity?: (hostname: string, certificate: PeerCertificate) => Error | undefined;
  /** Default: true. With false a server may be anybody, as in `node:tls`: for tests. */
  rejectUnauthorized?: boolean;
}

/**
 * A function is called for each connection; what it returns is read once, and used until it returns another
 * object.
 */
export type TlsSource<T> = T | (() => T | Promise<T>);

const material: OptionRules = {
  cert: { kind: 'pem' },
  key: { kind: 'pem' },
  passphrase: { kind: 'text', default: '', maxBytes: 1024 },
  ca: { kind: 'pems' },
  crl: { kind: 'pems' },
  psk: { kind: 'source' },
};
export const serverTlsRules: OptionRules = {
  ...material,
  requestCert: { kind: 'boolean' },
  checkClientIdentity: { kind: 'function' },
  rejectUnauthorized: { kind: 'boolean' },
};
export const channelTlsRules: OptionRules = {
  ...material,
  servername: { kind: 'text', default: '', maxBytes: 255 },
  identity: { kind: 'texts', maxBytes: 2048 },
  checkServerIdentity: { kind: 'function' },
  rejectUnauthorized: { kind: 'boolean' },
};

/** Refuses options that the other side has. */
function checkSide(what: string, given: unknown, rules: OptionRules): void {
  if (typeof given !== 'object' || given === null) return;
  const [other, side] =
    rules === serverTlsRules ? [channelTlsRules, 'channels'] : [serverTlsRules, 'servers'];
  for (const name of Object.keys(given))
    if (!Object.hasOwn(rules, name) && Object.hasOwn(other, name))
      throw new UnusableTls(
        `${what}: ${name} is an option of ${side}; there are ${Object.keys(rules).join(', ')}`,
      );
}

export type Checked<T extends TlsMaterial> = Readonly<Omit<T, 'identity'>> & {
  readonly identity?: readonly string[];
};

/** One set of options, as it is used. */
export interface TlsSet<T extends TlsMaterial, Made> {
  readonly options: Checked<T>;
  readonly made: Made;
}

/** How it is with files that have changed. */
interface FilesState {
  /** Why they cannot be used, and what was in them before is; '' when they can. */
  trouble: string;
  /** What is known before they are read: options beside them, and whether they hold a secret. */
  readonly more: object;
  readonly psk: boolean;
}

/**
 * What this side is told to use cannot be used, or not be read: no attempt gets further before somebody has
 * mended it.
 */
export class UnusableTls extends TypeError {}

/** Of the functions that tlsFiles() has made. */
const ofFiles = new WeakMap<object, FilesState>();

/** The newest set of a source, made anew when the source gives another object. */
export class TlsSets<T extends TlsMaterial, Made> {
  readonly #what: string;
  readonly #rules: OptionRules;
  readonly #source: TlsSource<T>;
  readonly #make: (options: Checked<T>) => Made;
  #given: T | undefined;
  #set: TlsSet<T, Made> | undefined;
  /** The trouble with files that was told last. */
  #told = '';

  /** Throws for what is wrong with options that are given once. */
  constructor(what: string, source: TlsSource<T>, rules: OptionRules, make: (options: Checked<T>) => Made) {
    this.#what = what;
    this.#source = source;
    this.#rules = rules;
    this.#make = make;
    if (typeof source !== 'function') this.#read(source);
    else this.#checkBesideFiles();
  }

  /**
   * Reads files, so that what is wrong with them is known before the first connection. What other functions
   * do is asked for connections only.
   */
  async ready(warn: Warn): Promise<void> {
    if (ofFiles.has(this.#source)) await this.current(warn);
  }

  /** What is in use; undefined when the source has not been asked yet. */
  get newest(): TlsSet<T, Made> | undefined {
    return this.#set;
  }

  /**
   * Throws or rejects when the source does, or when what it gives cannot be used. `warn`: told once of files
   * that have changed and cannot be used, and once when they can again.
   */
  async current(warn: Warn): Promise<TlsSet<T, Made>> {
    const source = this.#source;
    if (typeof source !== 'function') return this.#set!;
    let given: T;
    try {
      given = await source();
    } catch (error) {
      const text = `${this.#what}: ${textOf(error)}`;
      // Another function may wait for a service that is away for a moment.
      throw ofFiles.has(source) ? new UnusableTls(text, { cause: error }) : new Error(text, { cause: error });
    }
    this.#tell(warn);
    return this.#read(given);
  }

  #tell(warn: Warn): void {
    const trouble = ofFiles.get(this.#source)?.trouble ?? '';
    if (trouble === this.#told) return;
    this.#told = trouble;
    const now = 'new connections have what is in them';
    const before = 'new connections have what was in the files before';
    warn(
      `${this.#what}: ${trouble === '' ? `the files can be used again: ${now}` : `${trouble}; ${before}`}`,
    );
  }

  #read(given: T): TlsSet<T, Made> {
    if (this.#set !== undefined && given === this.#given) return this.#set;
    const options = this.#checked(given);
    this.#set = { options, made: this.#madeOf(options) };
    this.#given = given;
    return this.#set;
  }

  /** A channel would find out with its first connection. */
  #checkBesideFiles(): void {
    const files = ofFiles.get(this.#source);
    if (files === undefined) return;
    checkSide(this.#what, files.more, this.#rules);
    checkedOptions(this.#what, files.more, this.#rules);
    if (!files.psk) return;
    try {
      checkPskAlone(files.more);
    } catch (error) {
      throw new TypeError(`${this.#what}: ${textOf(error)}`, { cause: error });
    }
  }

  #checked(given: T): Checked<T> {
    checkSide(this.#what, given, this.#rules);
    if (typeof this.#source !== 'function') return checkedOptions<Checked<T>>(this.#what, given, this.#rules);
    try {
      return checkedOptions<Checked<T>>(this.#what, given, this.#rules);
    } catch (error) {
      throw new UnusableTls(textOf(error), { cause: error });
    }
  }

  /** OpenSSL's own errors do not say which option they are about. */
  #madeOf(options: Checked<T>): Made {
    try {
      return this.#make(options);
    } catch (error) {
      const cause = (error as Error).cause ?? error;
      throw new UnusableTls(`${this.#what}: ${textOf(error)}`, { cause });
    }
  }
}

/** Throws what is wrong with the texts. */
export function secureContext(options: Checked<TlsMaterial>, called: Called = (name) => name): SecureContext {
  const { cert, key, passphrase, ca, crl } = options;
  if ((cert === undefined) !== (key === undefined)) {
    throw new TypeError(`a ${cert === undefined ? 'key without its cert' : 'cert without its key'}`);
  }
  checkPem(options, called);
  try {
    return createSecureContext({
      minVersion: 'TLSv1.3',
      ...(cert !== undefined && { cert: bufferOf(cert), key: bufferOf(key!) }),
      ...(passphrase !== undefined && passphrase !== '' && { passphrase }),
      ...(ca !== undefined && { ca: buffersOf(ca) }),
      ...(crl !== undefined && { crl: buffersOf(crl) }),
    });
  } catch (error) {
    throw pemFault(error, options, called);
  }
}

/** Paths of PEM files. `psk`: of one with lines `NAME:HEX`. */
export interface TlsFiles {
  cert?: string;
  key?: string;
  ca?: string;
  crl?: string;
  psk?: string;
}

/** What was in them. */
export type ReadTls = Omit<TlsFiles, 'psk'> & Pick<TlsMaterial, 'psk'>;

/**
 * A source for the option `tls` that reads PEM files, and reads them again for the first connection after one
 * of them has changed. While they cannot be read, or key and certificate do not fit each other, as in the
 * middle of a change, connections get what was read before, and the log says so. `more`: other options of
 * `tls`.
 */
export function tlsFiles<T extends object = object>(files: TlsFiles, more?: T): () => ReadTls & T {
  checkPaths(files);
  const entries = Object.entries(files) as [string, string][];
  let stamps = '';
  let last: (ReadTls & T) | undefined;
  const state: FilesState = { trouble: '', more: { ...more }, psk: files.psk !== undefined };
  const stampOf = (name: string, path: string): string => {
    const { ino, size, mtimeMs, ctimeMs } = ofFile(name, path, () => statSync(path));
    return `${ino} ${size} ${mtimeMs} ${ctimeMs}`;
  };
  const source = (): ReadTls & T => {
    let now = '';
    try {
      now = entries.map(([name, path]) => stampOf(name, path)).join();
      if (last !== undefined && now === stamps) return last;
      const read = Object.fromEntries(entries.map(([name, path]) => [name, readAs(name, path)])) as ReadTls;
      // A passphrase, for one, is among the other options.
      checkFiles(files, { ...more, ...read });
      last = { ...more, ...read } as ReadTls & T;
      state.trouble = '';
    } catch (error) {
      if (last === undefined) throw error;
      state.trouble = textOf(error);
    }
    // Those that cannot be used are read once only, too: to parse certificates takes as long as a handshake.
    stamps = now;
    return last;
  };
  ofFiles.set(source, state);
  return source;
}

function checkPaths(files: TlsFiles): void {
  const names = ['cert', 'key', 'ca', 'crl', 'psk'];
  for (const name of Object.keys(files))
    if (
      !names.includes(name) &&
      (Object.hasOwn(serverTlsRules, name) || Object.hasOwn(channelTlsRules, name))
    )
      throw new TypeError(
        `tlsFiles: ${name} is no file; give it in the second argument, tlsFiles({ … }, { ${name}: … })`,
      );
  checkNames('tlsFiles', files, names);
  for (const [name, path] of Object.entries(files)) {
    // An error of the file system would have the whole text, which may be a key.
    if (typeof path !== 'string' || path.includes('-----BEGIN '))
      throw new TypeError(`tlsFiles: ${name}: takes the path of a file`);
  }
}

/** Errors of the file system do not name the option, nor do all of them name the file. */
function ofFile<T>(name: string, path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new Error(`${name} ${path}: ${textOf(error)}`, { cause: error });
  }
}

function readAs(name: string, path: string): string | PskKeys {
  return ofFile(name, path, () => {
    // It may have no end.
    if (statSync(path).isCharacterDevice()) throw new Error('ENODEV: it is a device');
    const text = readFileSync(path, 'utf8');
    return name === 'psk' ? readPsk(text) : text;
  });
}

/** Throws what is wrong with the texts of files, with the name of the file. */
function checkFiles(files: TlsFiles, read: Checked<TlsMaterial>): void {
  if (files.psk !== undefined) return;
  secureContext(read, (name) => (files[name] === undefined ? name : `${name} ${files[name]}`));
}
