/** The socket of a program that takes what it gets when the test says so. */
import { Duplex } from 'node:stream';

type Take = (error?: Error) => void;

export class SlowProgram extends Duplex {
  /** For each write in order: takes its data, or fails. */
  readonly takes: Take[] = [];

  override _write(_chunk: unknown, _encoding: string, callback: Take): void {
    this.takes.push(callback);
  }

  override _read(): void {}
}
