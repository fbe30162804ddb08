/**
 * Reads a service configuration from a JSON file, and reads it again when the file changes. The file is
 * checked once a second. The system's file watches miss files that are replaced by renaming, such as mounted
 * ConfigMaps of Kubernetes. The configuration of a channel owns this object.
 */
import { readFileSync, statSync, unwatchFile, watchFile } from 'node:fs';
import { inRoot } from '../../core/scopes.ts';
import { configBytesMax, configLookMs } from '../connections/limits.ts';

/** Throws for a file that is too large, and for a pipe, which would block this thread. */
function textIn(path: string): string {
  const about = statSync(path);
  if (!about.isFile()) throw new Error(`${path} is not a file`);
  if (about.size > configBytesMax)
    throw new RangeError(
      `${path} has ${about.size} bytes; a configuration has at most ${configBytesMax}: shorten the file, or give the option serviceConfig another file`,
    );
  return readFileSync(path, 'utf8');
}

export class ConfigFile {
  readonly #path: string;
  readonly #onText: (text: string) => void;
  readonly #onFault: (fault: unknown) => void;
  readonly #timer: NodeJS.Timeout;
  #text: string;

  /**
   * Reads the file in the constructor, and throws when the file cannot be read. `onText` gets each new
   * content of the file. `onFault` gets the reason when the file cannot be read.
   */
  constructor(path: string, onText: (text: string) => void, onFault: (fault: unknown) => void) {
    this.#path = path;
    this.#onText = onText;
    this.#onFault = onFault;
    this.#text = textIn(path);
    onText(this.#text);
    const watcher = inRoot(() => watchFile(path, { persistent: false, interval: configLookMs }, this.reread));
    // Node has one watcher for each path, and each channel with this path adds a listener to it.
    watcher.setMaxListeners(0);
    // The watcher first looks at the file on another thread, and does not notice a change before that look.
    this.#timer = inRoot(() => setTimeout(this.reread, configLookMs).unref());
  }

  readonly reread = (): void => {
    let text: string;
    try {
      text = textIn(this.#path);
    } catch (fault) {
      this.#onFault(fault);
      return;
    }
    if (text === this.#text) return;
    this.#text = text;
    this.#onText(text);
  };

  close(): void {
    clearTimeout(this.#timer);
    unwatchFile(this.#path, this.reread);
  }
}
