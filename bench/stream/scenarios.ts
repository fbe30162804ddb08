/** The scenarios of the benchmark of streams. */

export interface StreamScenario {
  readonly name: string;
  /**
   * `download` is a server stream, `upload` is a client stream, and `chat` sends one item at a time, back and
   * forth.
   */
  readonly kind: 'download' | 'upload' | 'chat';
  /** The payload of an item. */
  readonly bytes: number;
}

const MiB = 1024 * 1024;

export const streamScenarios: readonly StreamScenario[] = [
  { name: 'download-64B', kind: 'download', bytes: 64 },
  { name: 'upload-64B', kind: 'upload', bytes: 64 },
  { name: 'download-1MiB', kind: 'download', bytes: MiB },
  { name: 'upload-1MiB', kind: 'upload', bytes: MiB },
  { name: 'chat-64B', kind: 'chat', bytes: 64 },
];
