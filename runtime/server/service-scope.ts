/** Services of a server that share interceptors: what `server.with(...)` gives. */
import type { ServiceDefinition } from '../codec/types.ts';
import { checkedInterceptors, type Interceptor } from '../core/interceptor.ts';
import type { HandlersOf } from '../core/types.ts';

type AddWith = (
  interceptors: readonly Interceptor[],
  definition: ServiceDefinition,
  handlers: object,
) => void;

export class ServiceScope {
  readonly #interceptors: readonly Interceptor[];
  readonly #addWith: AddWith;

  /** @internal `server.with()` is the way to get one */
  constructor(interceptors: readonly Interceptor[], addWith: AddWith) {
    this.#interceptors = interceptors;
    this.#addWith = addWith;
  }

  /** As `server.add`, with the interceptors of the server and, inside of them, those of this scope. */
  add<D extends ServiceDefinition>(definition: D, handlers: Partial<HandlersOf<D>>): this {
    this.#addWith(this.#interceptors, definition, handlers);
    return this;
  }

  /** A scope with more interceptors, inside of those of this one. */
  with(...interceptors: Interceptor[]): ServiceScope {
    const inner = [...this.#interceptors, ...checkedInterceptors('with', interceptors)];
    return new ServiceScope(inner, this.#addWith);
  }
}
