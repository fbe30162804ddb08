/**
 * The service configuration of a channel. It is given as an object, read from a file, or taken from the
 * attributes of the resolver's addresses. When a configuration is invalid, the channel logs a warning that
 * names the field, and keeps the last valid configuration. A channel owns this object. A client reads it when
 * it makes a call and the version has changed.
 */
import { textOf } from '../../core/foreign.ts';
import type { Warn } from '../../core/warnings.ts';
import type { OutlierConfig } from '../connections/outliers.ts';
import type { RetryBudget } from '../connections/retry-budget.ts';
import type { Server } from '../connections/servers.ts';
import { ConfigFile } from './config-file.ts';
import type { BalancingConfig } from './load-balancing-config.ts';
import { type CheckedServiceConfig, checkedServiceConfig, type ServiceConfig } from './service-config.ts';

/** The name of the attribute in which an address has a service configuration as a JSON text. */
const attribute = 'serviceConfig';

const noHealthCheck =
  'service configuration: healthCheckConfig has no effect on this channel; give it healthCheck: healthCheck() of rdma-rpc/health';

/** The connections of a channel. */
interface Configured {
  balance(settings: BalancingConfig): void;
  /** Without an argument, the channel's own settings count again. */
  detectOutliers(settings: OutlierConfig | undefined): void;
  /** Returns false when the channel has no health check. */
  checkHealth(service: string | undefined): boolean;
}

/** The application's own options, which take precedence over the configuration. */
interface Given {
  readonly loadBalancing?: unknown;
  readonly outlierDetection?: unknown;
}

export class ChannelConfig {
  /** Increases with each new configuration. */
  version = 0;
  current: CheckedServiceConfig | undefined;
  #onChange: (config: CheckedServiceConfig) => void = () => undefined;
  readonly #warn: Warn;
  /** True when the application has given a configuration, so that the resolver's configuration is ignored. */
  readonly #given: boolean;
  readonly #file: ConfigFile | undefined;
  /** The last text, valid or not, so that each text is checked and warned of only once. */
  #text: string | undefined;

  /**
   * `given` is a configuration, or the path of a file. Throws for a wrong configuration, or a file that
   * cannot be read.
   */
  constructor(given: ServiceConfig | string | undefined, warn: Warn) {
    this.#warn = warn;
    this.#given = given !== undefined;
    if (typeof given === 'string') {
      const onText = (text: string): void => this.#take(`the file ${given}`, text);
      this.#file = new ConfigFile(given, onText, (fault) => this.#refuse(`the file ${given}`, fault));
      if (this.current === undefined) {
        this.close();
        // The caller gets the error here; after a later change, the same error becomes a warning.
        checkedServiceConfig(JSON.parse(this.#text!));
      }
    } else if (given !== undefined) this.#set(checkedServiceConfig(given));
  }

  /**
   * Applies the settings of the whole channel, now and after each change.
   */
  apply(to: Configured, given: Given = {}, { budget }: { readonly budget: RetryBudget }): void {
    this.#onChange = ({ balancing, outliers, health, throttling }) => {
      if (balancing !== undefined && given.loadBalancing === undefined) to.balance(balancing);
      if (given.outlierDetection === undefined) to.detectOutliers(outliers);
      if (!to.checkHealth(health) && health !== undefined) this.#warn(noHealthCheck);
      if (throttling !== undefined) budget.resize(throttling.tokens, throttling.perSuccess);
    };
    if (this.current !== undefined) this.#onChange(this.current);
  }

  /** Takes the configuration of the first address that has one. */
  onServers(servers: readonly Server[]): void {
    if (this.#given) return;
    const having = servers.find(({ attributes }) => attributes?.[attribute] !== undefined);
    if (having !== undefined) this.#take(`the resolver's ${having.address}`, having.attributes![attribute]!);
  }

  close(): void {
    this.#file?.close();
  }

  #take(where: string, text: string): void {
    if (text === this.#text) return;
    this.#text = text;
    try {
      this.#set(checkedServiceConfig(JSON.parse(text)));
    } catch (fault) {
      this.#refuse(where, fault);
    }
  }

  #refuse(where: string, fault: unknown): void {
    if (this.current === undefined && this.#given) return;
    this.#warn(`service configuration of ${where} is not used, the last good one stays: ${textOf(fault)}`);
  }

  #set(config: CheckedServiceConfig): void {
    for (const line of config.reports) this.#warn(`service configuration: ${line}`);
    this.current = config;
    ++this.version;
    this.#onChange(config);
  }
}

/**
 * Returns the configuration of a channel, or undefined when the channel has no configuration and its resolver
 * cannot provide one.
 */
export function configOf(
  { resolver }: { readonly resolver?: unknown },
  { serviceConfig }: { readonly serviceConfig?: ServiceConfig | string },
  warn: Warn,
): ChannelConfig | undefined {
  if (serviceConfig === undefined && resolver === undefined) return undefined;
  return new ChannelConfig(serviceConfig, warn);
}
