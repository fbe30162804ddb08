/**
 * The arena of a loopback context, which has an ArrayBuffer for each block. Only memory that the application
 * allocates counts against `arenaBytes`. Messages take as much memory as they need, because both sides share
 * one heap and need no protection from each other. LoopbackContext uses this file on its JS thread.
 */
interface Block {
  readonly bytes: number;
  references: number;
  /** The buffer, as long as this side needs it. The application may have the buffer, too. */
  held: ArrayBuffer | undefined;
  /** The reference to a buffer that the application has. It ends with the last view of the buffer. */
  lent: WeakRef<ArrayBuffer> | undefined;
}

export class Blocks {
  leasedBytes = 0;

  readonly #blocks = new Map<number, Block>();
  readonly #numbers = new WeakMap<ArrayBuffer, number>();
  readonly #collected = new FinalizationRegistry<number>((block) => this.#end(block));
  #last = 0;

  get count(): number {
    return this.#blocks.size;
  }

  /** Returns the number of a block with one reference. */
  alloc(bytes: number): number {
    const buffer = new ArrayBuffer(bytes);
    const block = this.#nextNumber();
    this.#blocks.set(block, { bytes, references: 1, held: buffer, lent: undefined });
    this.#numbers.set(buffer, block);
    this.leasedBytes += bytes;
    return block;
  }

  /** Returns the size of the block in bytes, or 0 when it has been released. */
  sizeOf(block: number): number {
    return this.#find(block)?.byteLength ?? 0;
  }

  /** Returns the block's memory, which this side keeps until the block is released. */
  memoryOf(block: number): ArrayBuffer {
    const buffer = this.#find(block);
    if (buffer === undefined) throw new Error(`loopback: block ${block} has been released`);
    return buffer;
  }

  /**
   * Returns the block's memory for the application. The memory is released together with its last view, if it
   * was not released before.
   */
  lend(block: number): ArrayBuffer {
    const buffer = this.memoryOf(block);
    const known = this.#blocks.get(block)!;
    known.held = undefined;
    if (known.lent === undefined) {
      known.lent = new WeakRef(buffer);
      this.#collected.register(buffer, block, known);
    }
    return buffer;
  }

  /** Returns the number of the block with this memory, or 0. */
  numberOf(buffer: ArrayBuffer): number {
    return this.#numbers.get(buffer) ?? 0;
  }

  addReference(block: number): void {
    const known = this.#blocks.get(block);
    if (known === undefined) return;
    ++known.references;
    // The buffer is kept until JS has received the event that contains the block.
    known.held = this.memoryOf(block);
  }

  release(block: number): void {
    const known = this.#blocks.get(block);
    if (known === undefined) return;
    if (--known.references === 0) this.#end(block);
    else if (known.lent !== undefined) known.held = undefined;
  }

  /** Releases the block and detaches its memory, so that views of it are empty. */
  take(block: number): void {
    const buffer = this.#blocks.has(block) ? this.memoryOf(block) : undefined;
    if (buffer !== undefined && buffer.byteLength > 0) structuredClone(null, { transfer: [buffer] });
    this.release(block);
  }

  #find(block: number): ArrayBuffer | undefined {
    const known = this.#blocks.get(block);
    return known?.held ?? known?.lent?.deref();
  }

  #end(block: number): void {
    const known = this.#blocks.get(block);
    if (known === undefined) return;
    this.#blocks.delete(block);
    this.#collected.unregister(known);
    this.leasedBytes -= known.bytes;
  }

  /** Returns a free number, which is a positive int32 word. */
  #nextNumber(): number {
    do this.#last = (this.#last + 1) & 0x7fff_ffff;
    while (this.#last === 0 || this.#blocks.has(this.#last));
    return this.#last;
  }
}
