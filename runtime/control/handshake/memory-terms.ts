/**
 * The data that both sides of a connection need to make a queue pair for remote memory: the results of hello
 * and welcome, and the fabric of the session. Both handshakes create it, and memory/ uses it on the JS thread
 * of channel or server. docs/wire/connections.md describes the frames.
 */
import type { Through } from '../../boundary/sessions.ts';
import { type FabricName, fabrics } from '../../fabrics.ts';
import type { NativeOpenOptions } from '../../native/verbs-device.ts';
import { feature, type Memory } from '../frames.ts';
import { type Binding, checkProof } from './binding.ts';
import { choiceOf, type LocalSide } from './session-setup.ts';

interface Terms {
  readonly side: LocalSide;
  readonly fabric: FabricName;
  /** Feature bits of the peer. */
  readonly features: number;
  readonly cipher: string | undefined;
  readonly binding: Binding | undefined;
}

/**
 * The data for connecting a queue pair: the address that the queue pair dials, and the words by which the two
 * sides identify themselves.
 */
export interface Joining {
  readonly through: Through | undefined;
  readonly words: Uint8Array | undefined;
}

export class MemoryTerms {
  readonly fabric: FabricName;
  readonly #terms: Terms;

  private constructor(terms: Terms) {
    this.#terms = terms;
    this.fabric = terms.fabric;
  }

  /** Returns undefined when the peer does not know remote memory. */
  static of(terms: Terms): MemoryTerms | undefined {
    return (terms.features & feature.memory) === 0 ? undefined : new MemoryTerms(terms);
  }

  /** The reason why this session cannot have remote memory, or '' when it can. */
  get whyNot(): string {
    const { cipher, fabric } = this.#terms;
    if (cipher !== undefined)
      return `this session is sealed (${cipher}), and remote memory is not: its peers READ and WRITE without this side's CPU, so nothing could encrypt what they transfer`;
    if (fabrics[fabric].device === undefined)
      return `the fabric ${fabric} has no remote memory; shm, tcp and verbs have it (option fabric)`;
    return '';
  }

  /**
   * The device for this side. Each queue pair has a device of its own, so that a peer cannot reach the memory
   * of another peer.
   */
  get device(): NativeOpenOptions {
    const { side, fabric } = this.#terms;
    const { device, dials } = fabrics[fabric];
    if (device === undefined) throw new Error(this.whyNot);
    const { verbs } = choiceOf(side, fabric);
    return { fabric: device, handedOver: dials !== 'nothing', ...(verbs !== undefined && { verbs }) };
  }

  /** Returns the proof for the `memory` frame of the client. */
  offered(number: number, client: Uint8Array): { readonly proof?: Uint8Array } {
    return proved(this.#attempt(number)?.attach(client));
  }
  /** Returns the proof for the `memoryAccepted` frame of the server. */
  accepted(number: number, client: Uint8Array, server: Uint8Array): { readonly proof?: Uint8Array } {
    return proved(this.#attempt(number)?.attached(client, server));
  }
  /** Throws when the frame does not prove that its queue pair belongs to the peer. */
  checkOffer({ number, address, proof }: Omit<Memory, 'type'>): void {
    const attempt = this.#attempt(number);
    if (attempt !== undefined)
      checkProof(proof, attempt.attach(address), 'the queue pair for memory of the client');
  }
  checkAnswer({ number, address, proof }: Omit<Memory, 'type'>, client: Uint8Array): void {
    const attempt = this.#attempt(number);
    if (attempt !== undefined)
      checkProof(proof, attempt.attached(client, address), 'the queue pair for memory of the server');
  }

  joining(number: number, client: Uint8Array, server: Uint8Array): Joining {
    const { side, fabric } = this.#terms;
    const dials = side.role === 'client' && fabrics[fabric].dials !== 'nothing';
    return {
      through: dials ? side.through : undefined,
      words: this.#attempt(number)?.setupWords(side.role, client, server),
    };
  }

  #attempt(number: number) {
    return this.#terms.binding?.memory(number, this.#terms.fabric);
  }
}

const proved = (proof: Uint8Array | undefined) => (proof === undefined ? {} : { proof });
