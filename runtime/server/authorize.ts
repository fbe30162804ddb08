/**
 * Option `authorize` of a server: decides which peer may call which method. With this option, each handler
 * and its interceptors get a wrapper that decides about the call. Servers without the option have no such
 * wrapper. Runs for each call, on the JS thread of the server.
 */
import type { ServiceDefinition } from '../codec/types.ts';
import { RpcError } from '../core/errors/rpc-error.ts';
import { Status } from '../core/errors/status.ts';
import { promiseOf } from '../core/foreign.ts';
import { meantInstead, slipOf } from '../core/nearest.ts';
import type { PeerInfo } from '../core/peer.ts';
import { AuthorizeFailed, type Warn } from '../core/warnings.ts';
import { authorizeMs } from '../limits.ts';
import { checkWhole } from './allowed.ts';
import { givenUp } from './call-faults.ts';
import type { ServerCall } from './server-call.ts';
import type { AnyHandler } from './server-method.ts';

/** Returns whether a peer may call `package.Service/Method`. Only the result `true` allows the call. */
export type AuthorizeFunction = (peer: PeerInfo, method: string) => boolean | Promise<boolean>;
/**
 * Allowed identities by `package.Service/Method`, `package.Service/*` or `*`. Only the most specific key
 * applies. The identity `*` allows all peers, including peers without a known identity. A method that no key
 * covers cannot be called at all.
 */
export type AuthorizeTable = Readonly<Record<string, string | readonly string[]>>;

const everybody = '*';
const key = /^(\*|[\w.]+\/(\*|\w+))$/;

function checkedTable(given: object): ReadonlyMap<string, ReadonlySet<string>> {
  const table = new Map<string, ReadonlySet<string>>();
  for (const [name, value] of Object.entries(given) as [string, unknown][]) {
    if (!key.test(name)) {
      throw new TypeError(
        `createServer: authorize: the key ${JSON.stringify(name)} must be 'package.Service/Method', 'package.Service/*' or '*'`,
      );
    }
    const identities: unknown[] = Array.isArray(value) ? value : [value];
    if (identities.some((each) => typeof each !== 'string'))
      throw new TypeError(`createServer: authorize: ${name}: must be an identity or a list of identities`);
    const named = new Set(identities as string[]);
    checkWhole(
      `createServer: authorize: ${name}`,
      [...named].filter((each) => each !== everybody),
    );
    table.set(name, named);
  }
  return table;
}

function byTable(given: object): AuthorizeFunction {
  const table = checkedTable(given);
  return ({ identity }, method) => {
    const service = method.slice(0, method.indexOf('/'));
    const allowed = table.get(method) ?? table.get(`${service}/*`) ?? table.get('*');
    if (allowed === undefined) return false;
    return allowed.has(everybody) || (identity !== undefined && allowed.has(identity));
  };
}

/** A call that `authorize` has denied, for audits. */
export interface DeniedCall {
  /** The caller. */
  readonly peer: PeerInfo;
  /** `package.Service/Method` */
  readonly method: string;
}

export class Authorization {
  readonly #decide: AuthorizeFunction;
  readonly #onDenied: (call: DeniedCall) => void;
  readonly #names: readonly string[];
  #warned = false;

  /** Throws for an invalid table. `onDenied` must not throw. */
  constructor(given: AuthorizeFunction | AuthorizeTable, onDenied: (call: DeniedCall) => void) {
    this.#onDenied = onDenied;
    this.#decide = typeof given === 'function' ? given : byTable(given);
    this.#names = typeof given === 'function' ? [] : Object.keys(given);
  }

  /**
   * Throws when the table names methods that the service does not have, because such names must be misspelt.
   */
  check({ fullName, methods }: ServiceDefinition): void {
    const known = Object.values(methods).map((method) => method.fullName);
    for (const name of this.#names) {
      if (!name.startsWith(`${fullName}/`) || name.endsWith('/*') || known.includes(name)) continue;
      throw new TypeError(`authorize: there is no method ${name}${meantInstead(name, known)}`);
    }
  }

  /**
   * Warns of services in the table that the server does not have. A misspelt entry would silently deny all
   * calls. Runs once, when the server begins to listen.
   */
  warnOfServices(services: readonly ServiceDefinition[], warn: Warn): void {
    const known = services.map(({ fullName }) => fullName);
    const named = new Set(
      this.#names.filter((name) => name !== '*').map((name) => name.slice(0, name.indexOf('/'))),
    );
    // A server without services will get its services later.
    const unknown = known.length === 0 ? [] : [...named].filter((service) => !known.includes(service));
    if (this.#warned || unknown.length === 0) return;
    this.#warned = true;
    for (const service of unknown) {
      const meant = slipOf(service, known);
      const next =
        meant === undefined
          ? 'add it before listen(), or remove it from the table'
          : `did you mean ${meant}?`;
      warn(`authorize: there is no service ${service} on this server; ${next}`);
    }
  }

  /**
   * Throws or rejects when the peer may not call the method. Returns undefined when the call is allowed at
   * once.
   */
  admit(peer: PeerInfo, method: string): Promise<void> | undefined {
    const allowed = decided(this.#decide, peer, method);
    if (allowed === true) return undefined;
    if (allowed === undefined) throw this.#denied(peer, method);
    return withinTime(allowed, method).then((answer) => {
      if (answer !== true) throw this.#denied(peer, method);
    });
  }

  #denied(peer: PeerInfo, method: string): RpcError {
    this.#onDenied({ peer, method });
    return new RpcError(
      Status.PERMISSION_DENIED,
      `${method}: this client is not allowed to call this method (option authorize of the server)`,
    );
  }

  /**
   * Returns a handler that runs `handler` for allowed peers only. Other callers learn that the handler has
   * not run, and so do callers whose time ends before the decision.
   */
  around(method: string, handler: AnyHandler): AnyHandler {
    const decide = this.#decide;
    const denied = ({ peer }: ServerCall): RpcError => this.#denied(peer, method);

    return function (this: unknown, request: never, context: never): unknown {
      const call: ServerCall = context;
      let allowed: true | Promise<unknown> | undefined;
      try {
        allowed = decided(decide, call.peer, method);
      } catch (error) {
        call.notRun = true;
        throw error;
      }
      if (allowed === true) return handler.call(this, request, context);
      call.notRun = true;
      if (allowed === undefined) throw denied(call);
      call.session.defer(call, true);
      return withinTime(allowed, method).then((answer) => {
        if (call.aborted !== undefined) throw call.aborted;
        if (answer !== true) throw denied(call);
        // The call may have been cancelled although this side has not read the event yet. The client has then
        // been told that the handler has not run.
        if (!call.session.defer(call, false)) throw givenUp(method, Status.CANCELLED);
        call.notRun = false;
        return handler.call(this, request, context);
      });
    } as AnyHandler;
  }
}

/** The application may answer the call with an RpcError of its own. */
const faultOf = (error: unknown): Error => (error instanceof RpcError ? error : new AuthorizeFailed(error));

/** Returns true for an allowed call, a promise of the decision, or undefined for a denied call. */
function decided(
  decide: AuthorizeFunction,
  peer: PeerInfo,
  method: string,
): true | Promise<unknown> | undefined {
  try {
    const allowed: unknown = decide(peer, method);
    return allowed === true ? true : promiseOf(allowed);
  } catch (error) {
    throw faultOf(error);
  }
}

function withinTime(decision: Promise<unknown>, method: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const late = `${method}: the function authorize of the server has not decided within ${authorizeMs} ms; try again later`;
    const timer = setTimeout(() => reject(new RpcError(Status.UNAVAILABLE, late)), authorizeMs);
    decision.then(resolve, (error: unknown) => reject(faultOf(error))).finally(() => clearTimeout(timer));
  });
}
