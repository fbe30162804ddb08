/**
 * A second session on a connection, in which the server makes the calls and the client serves them. It is
 * created when the client asks for it, with the limits of hello and welcome, on the fabric of the first
 * session. The client's queue pair is active, as in the first session: if the fabric dials, the client's
 * queue pair dials. Both handshakes create an object of this class, and reverse/ uses it on the JS thread of
 * channel or server.
 *
 * | client                   | server                         |                                               |
 * |--------------------------|--------------------------------|-----------------------------------------------|
 * | serve: its queue pair    |                                | number 0, 1, 2 … on this connection           |
 * |                          | serving: its queue pair        | or unserve, with a status                     |
 * | dials                    | served, when it is connected   | from now on the server calls                  |
 * | unserve                  | unserve, after its last answer | or the server by itself, when it goes         |
 * | unserve `now`            |                                | ends at once; and either ends with the socket |
 */
import type { Through } from '../../boundary/sessions.ts';
import type { FabricName } from '../../fabrics.ts';
import { feature, type PeerLimits, type Serve, type Serving } from '../frames.ts';
import type { Protection } from '../security-level.ts';
import { type Binding, type BoundAttempt, checkProof } from './binding.ts';
import { type LocalSide, type Prepared, prepareSession } from './session-setup.ts';

/** The results of hello and welcome, and the fabric of the first session. */
interface Terms {
  readonly side: LocalSide;
  readonly fabric: FabricName;
  readonly peer: PeerLimits;
  readonly agreed: PeerLimits;
  /** The limits that the peer has announced. */
  readonly features: number;
  readonly protection: Protection;
  readonly cipher: string | undefined;
  readonly binding: Binding | undefined;
}

type Offer = Pick<Serve, 'number' | 'address' | 'proof'>;

/** One side of a second session, until the session has an owner. */
export class SecondHalf {
  readonly number: number;
  readonly prepared: Prepared;
  readonly #attempt: BoundAttempt | undefined;
  readonly #through: Through | undefined;

  constructor(
    number: number,
    prepared: Prepared,
    attempt: BoundAttempt | undefined,
    through: Through | undefined,
  ) {
    this.number = number;
    this.prepared = prepared;
    this.#attempt = attempt;
    this.#through = through;
  }

  /** Returns the client's `serve` frame. */
  offer(): Offer {
    const { context, target } = this.prepared;
    const address = context.sessions.addressOf(target.session);
    return this.#proved(address, this.#attempt?.attach(address));
  }

  /**
   * Connects the session on the client. The session must already have its owner. Returns '' on success, or
   * the reason why it cannot connect. Throws when the frame does not prove that the queue pair belongs to the
   * server.
   */
  dial({ address: server, proof }: Serving): string {
    const { context, target } = this.prepared;
    const client = context.native.sessionAddress(target.session);
    const attempt = this.#attempt;
    if (attempt !== undefined)
      checkProof(proof, attempt.attached(client, server), 'the queue pair of the server');
    const words = attempt?.setupWords('client', client, server);
    return context.sessions.dial(target.session, server, this.#through, words);
  }

  /**
   * Connects the session on the server. Returns the `serving` frame, or the reason why the session cannot
   * connect. Throws when the frame does not prove that the queue pair belongs to the client.
   */
  accept({ address: client, proof }: Serve): Offer | string {
    const { context, target } = this.prepared;
    const attempt = this.#attempt;
    if (attempt !== undefined) checkProof(proof, attempt.attach(client), 'the queue pair of the client');
    const server = context.native.sessionAddress(target.session);
    const words = attempt?.setupWords('server', client, server);
    const why = context.sessions.accept(target.session, client, words);
    return why === '' ? this.#proved(server, attempt?.attached(client, server)) : why;
  }

  #proved(address: Uint8Array, proof: Uint8Array | undefined): Offer {
    return { number: this.number, address, ...(proof !== undefined && { proof }) };
  }
}

export class SecondSession {
  readonly #terms: Terms;
  /** The number that the client gives its next second session. */
  #next = 0;

  private constructor(terms: Terms) {
    this.#terms = terms;
  }

  /** Returns undefined when the peer does not support second sessions. */
  static of(terms: Terms): SecondSession | undefined {
    return (terms.features & feature.reverse) === 0 ? undefined : new SecondSession(terms);
  }

  /**
   * Creates this side of a second session. A server takes `number` from the client's frame. Throws when a
   * limit is reached.
   */
  open(number: number = this.#next): SecondHalf {
    const { side, fabric, peer, agreed, features, protection, cipher, binding } = this.#terms;
    const attempt = binding?.reverse(number, fabric);
    const seal =
      cipher === undefined || attempt === undefined
        ? {}
        : { seal: { cipher, keys: attempt.sealKeys(side.role) } };
    const swapped = {
      ...side,
      role: side.role === 'client' ? 'server' : 'client',
      active: side.role === 'client',
    } as const;
    const prepared = prepareSession(swapped, fabric, peer, agreed, features, { protection, ...seal });
    this.#next = number + 1;
    return new SecondHalf(number, prepared, attempt, side.through);
  }
}
