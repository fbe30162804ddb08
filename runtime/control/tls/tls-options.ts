/**
 * The TLS options of servers and channels: certificates and keys. They are given directly, returned by a
 * function that is called for each connection, or read from files. tls-server.ts and tls-client.ts use this
 * file.
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

/** Options with the names of `node:tls`. */
export interface TlsMaterial {
  /**
   * This side's certificate, followed by the intermediate certificates up to an authority that the other side
   * trusts.
   */
  cert?: Pem;
  /** The private key of the certificate. */
  key?: Pem;
  /** Passphrase of the key. */
  passphrase?: string;
  /**
   * The authorities that may have signed the other side's certificate. Default on a channel: the authorities
   * that Node trusts.
   */
  ca?: Pem | readonly Pem[];
  /** Certificate revocation lists of the authorities. */
  crl?: Pem | readonly Pem[];
  /**
   * Pre-shared keys by name, used instead of certificates. A channel has exactly one key. Never put keys on
   * the command line or in the source code.
   */
  psk?: PskKeys;
}

export interface ServerTls extends TlsMaterial {
  /** Asks clients for a certificate. Default: true when `ca` is given, otherwise false. */
  requestCert?: boolean;
  /**
   * Refuses clients without a trusted certificate. Default: true. With false, such clients are accepted and
   * have no `identity`.
   */
  rejectUnauthorized?: boolean;
  /**
   * An additional check of a client's trusted certificate. It returns an error to reject the certificate,
   * otherwise undefined. The property `issuerCertificate` of the certificate leads to the intermediate
   * certificates that were sent with it.
   */
  checkClientIdentity?: (certificate: X509Certificate) => Error | undefined;
}

export interface ChannelTls extends TlsMaterial {
  /** The name that the server's certificate must have. Default: the host of the address. */
  servername?: string;
  /**
   * The accepted identities of the server, such as a SPIFFE id. They are checked instead of the server's
   * name.
   */
  identity?: string | readonly string[];
  /**
   * Replaces the check of the server's name, as in `node:tls`. It returns an error to reject the certificate,
   * otherwise undefined.
   */
  checkServerIdentity?: (hostname: string, certificate: PeerCertificate) => Error | undefined;
  /**
   * Refuses servers without a trusted certificate. Default: true. With false, any server is accepted, as in
   * `node:tls`; use this only in tests.
   */
  rejectUnauthorized?: boolean;
}

/**
 * Options, or a function that is called for each connection and returns options. Each object that the
 * function returns is read once, and used until the function returns another object.
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

/** Throws for options that only the other side has. */
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

/** One checked set of options, with the object that was made from this set. */
export interface TlsSet<T extends TlsMaterial, Made> {
  readonly options: Checked<T>;
  readonly made: Made;
}

/** The state of files that have changed. */
interface FilesState {
  /**
   * The reason why the files cannot be used, or '' when they can be used. While they cannot be used, their
   * earlier content is used.
   */
  trouble: string;
  /**
   * The options that do not come from files. `psk` is true when one of the files contains pre-shared keys.
   * Both are known before the files are read.
   */
  readonly more: object;
  readonly psk: boolean;
}

/**
 * The error for TLS options or files of this side that cannot be used. No attempt can succeed before they are
 * fixed.
 */
export class UnusableTls extends TypeError {}

/** The states of the functions that tlsFiles() has returned. */
const ofFiles = new WeakMap<object, FilesState>();

/** The newest set of a source. A new set is made when the source returns another object. */
export class TlsSets<T extends TlsMaterial, Made> {
  readonly #what: string;
  readonly #rules: OptionRules;
  readonly #source: TlsSource<T>;
  readonly #make: (options: Checked<T>) => Made;
  #given: T | undefined;
  #set: TlsSet<T, Made> | undefined;
  /** The problem with files that was reported last. */
  #told = '';

  /** Throws for invalid options when `source` is an object with options. */
  constructor(what: string, source: TlsSource<T>, rules: OptionRules, make: (options: Checked<T>) => Made) {
    this.#what = what;
    this.#source = source;
    this.#rules = rules;
    this.#make = make;
    if (typeof source !== 'function') this.#read(source);
    else this.#checkBesideFiles();
  }

  /**
   * Reads the files of tlsFiles(), so that errors in them are known before the first connection. Other
   * functions are called only for connections.
   */
  async ready(warn: Warn): Promise<void> {
    if (ofFiles.has(this.#source)) await this.current(warn);
  }

  /** The set that is in use, or undefined when the source has not been read yet. */
  get newest(): TlsSet<T, Made> | undefined {
    return this.#set;
  }

  /**
   * Returns the current set. Rejects when the source throws or rejects, and when its result cannot be used.
   * `warn` is called once when files have changed and cannot be used, and once when they can be used again.
   */
  async current(warn: Warn): Promise<TlsSet<T, Made>> {
    const source = this.#source;
    if (typeof source !== 'function') return this.#set!;
    let given: T;
    try {
      given = await source();
    } catch (error) {
      const text = `${this.#what}: ${textOf(error)}`;
      // A function other than tlsFiles() may depend on a service that is unavailable for a moment, so calls
      // that meet its errors can be retried.
      throw ofFiles.has(source) ? new UnusableTls(text, { cause: error }) : new Error(text, { cause: error });
    }
    this.#tell(warn);
    return this.#read(given);
  }

  #tell(warn: Warn): void {
    const trouble = ofFiles.get(this.#source)?.trouble ?? '';
    if (trouble === this.#told) return;
    this.#told = trouble;
    const now = 'new connections use them';
    const before = 'new connections use the previous contents of the files';
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

  /**
   * Throws when the options that do not come from files are invalid. Otherwise a channel would notice such
   * errors only with its first connection.
   */
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

  /** Makes the object of a set. Adds the name of the option to errors of OpenSSL, which do not name it. */
  #madeOf(options: Checked<T>): Made {
    try {
      return this.#make(options);
    } catch (error) {
      const cause = (error as Error).cause ?? error;
      throw new UnusableTls(`${this.#what}: ${textOf(error)}`, { cause });
    }
  }
}

/** Creates the secure context. Throws an error that explains what is wrong with the PEM texts. */
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

/** Paths of PEM files. `psk` is the path of a file with lines `NAME:HEX`. */
export interface TlsFiles {
  cert?: string;
  key?: string;
  ca?: string;
  crl?: string;
  psk?: string;
}

/** The contents of the files of TlsFiles. */
export type ReadTls = Omit<TlsFiles, 'psk'> & Pick<TlsMaterial, 'psk'>;

/**
 * Returns a source for the option `tls` that reads PEM files. After one of the files has changed, the next
 * connection reads them again. While the files cannot be read, or key and certificate do not match (as in the
 * middle of a change), connections use the earlier content, and the log says so. `more` has other options of
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
      // The check also needs the other options, for example a passphrase.
      checkFiles(files, { ...more, ...read });
      last = { ...more, ...read } as ReadTls & T;
      state.trouble = '';
    } catch (error) {
      if (last === undefined) throw error;
      state.trouble = textOf(error);
    }
    // Files that cannot be used are also read only once, because parsing certificates takes as long as a
    // handshake.
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
    // This error is thrown because an error of the file system would contain the whole text, which may be a
    // key.
    if (typeof path !== 'string' || path.includes('-----BEGIN '))
      throw new TypeError(`tlsFiles: ${name}: takes the path of a file`);
  }
}

/**
 * Adds option and file to an error of the file system. Such an error never names the option, and does not
 * always name the file.
 */
function ofFile<T>(name: string, path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new Error(`${name} ${path}: ${textOf(error)}`, { cause: error });
  }
}

function readAs(name: string, path: string): string | PskKeys {
  return ofFile(name, path, () => {
    // Reading a device may never end.
    if (statSync(path).isCharacterDevice()) throw new Error('ENODEV: it is a device');
    const text = readFileSync(path, 'utf8');
    return name === 'psk' ? readPsk(text) : text;
  });
}

/** Throws an error with the name of the file when its text is invalid. */
function checkFiles(files: TlsFiles, read: Checked<TlsMaterial>): void {
  if (files.psk !== undefined) return;
  secureContext(read, (name) => (files[name] === undefined ? name : `${name} ${files[name]}`));
}
