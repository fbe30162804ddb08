/**
 * Reads a service configuration from a JSON file, and reads it again when the file changes. The file is
 * checked once a second. The system's file watches miss files that are replaced by renaming, such as mounted
 * ConfigMaps of Kubernetes. The configuration of a channel owns this object.
 */
import { readFileSync, unwatchFile, watchFile } from 'node:fs';
import { inRoot } from '../../core/scopes.ts';
import { configLookMs } from '../connections/limits.ts';

export class ConfigFile {
  readonly #path: string;
  readonly #onText: (text: string) => void;
  readonly #onFault: (fault: unknown) => void;

  /**
   * Reads the file in the constructor, and throws when the file cannot be read. `onText` gets the later
   * contents of the file. `onFault` gets the reason when the file cannot be read.
   */
  constructor(path: string, onText: (text: string) => void, onFault: (fault: unknown) => void) {
    this.#path = path;
    this.#onText = onText;
    this.#onFault = onFault;
    onText(readFileSync(path, 'utf8'));
    inRoot(() => watchFile(path, { persistent: false, interval: configLookMs }, this.reread));
  }

  readonly reread = (): void => {
    let text: string;
    try {
      text = readFileSync(this.#path, 'utf8');
    } catch (fault) {
      this.#onFault(fault);
      return;
    }
    this.#onText(text);
  };

  close(): void {
    unwatchFile(this.#path, this.reread);
  }
}
