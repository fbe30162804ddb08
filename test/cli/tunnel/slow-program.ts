/** Simulates the socket of a program that reads data only when the test tells it to. */
import { Duplex } from 'node:stream';

type Take = (error?: Error) => void;

export class SlowProgram extends Duplex {
  /** The result of each write in order: the data is taken, or the write fails. */
  readonly takes: Take[] = [];

  override _write(_chunk: unknown, _encoding: string, callback: Take): void {
    this.takes.push(callback);
  }

  override _read(): void {}
}
