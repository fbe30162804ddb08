/**
 * Builds services and methods. build.ts calls it once all types are declared.
 */

import { methodId } from '../../runtime/codec/service/method-id.ts';
import type { ServiceDescriptorProto } from '../descriptor/descriptor.rdma.ts';
import { join, type SchemaFile } from '../link/schema.ts';
import type { OptionTree } from '../options/tree.ts';
import type { Building } from './building.ts';
import type { Method, Service } from './model.ts';
import { type Identifiers, keysFor, methodName } from './names.ts';
import { customOptions, methodOptions } from './options.ts';

export class ServiceBuilder {
  readonly #building: Building;
  /** Method paths of all files, by id. Two paths with the same id are an error. */
  readonly #ids = new Map<number, string>();

  constructor(building: Building) {
    this.#building = building;
  }

  /** Chooses the service's names now, and returns a function that completes it once all types are known. */
  declare(
    file: SchemaFile,
    descriptor: ServiceDescriptorProto,
    path: string,
    identifiers: Identifiers,
  ): () => Service {
    const { name = '' } = descriptor;
    const [definition, client, handlers] = (['Definition', 'Client', 'Handlers'] as const).map((suffix) =>
      identifiers.derive(name, suffix),
    ) as [string, string, string];
    return () => {
      const building = this.#building;
      const fullName = join(file.descriptor.package ?? '', name);
      const options = building.options('ServiceOptions', descriptor.options);
      return {
        name,
        fullName,
        definition,
        client,
        handlers,
        methods: this.#methods(file, descriptor, path, fullName, options),
        custom: customOptions(building.schema, options),
        ...building.documented(file, path, 'ServiceOptions', options),
      };
    };
  }

  #methods(
    file: SchemaFile,
    service: ServiceDescriptorProto,
    servicePath: string,
    fullName: string,
    serviceOptions: OptionTree | undefined,
  ): Method[] {
    const building = this.#building;
    const keys = keysFor(
      service.method.map(({ name = '' }) => name),
      methodName,
    );
    return service.method.flatMap((method, i) => {
      const place = `${servicePath},2,${i}`;
      const { name = '' } = method;
      const key = keys.get(name) ?? '';
      const request = building.message(file, method.inputType);
      const response = building.message(file, method.outputType);
      if (request === undefined || response === undefined) return [];
      const tree = building.options('MethodOptions', method.options);
      const options = methodOptions(building.schema, tree, serviceOptions, (message) =>
        building.report(file, place, 1, message),
      );
      const path = `${fullName}/${name}`;
      const preferred = options.preferredCodec;
      return {
        name,
        key,
        path,
        id: this.#id(file, place, path, methodId(path)),
        preferredId:
          preferred === undefined ? undefined : this.#id(file, place, path, methodId(path, preferred)),
        request,
        response,
        requestStream: method.clientStreaming === true,
        responseStream: method.serverStreaming === true,
        options,
        ...building.documented(file, place, 'MethodOptions', tree),
      };
    });
  }

  /** Returns `id`. Reports it when another method has the same id. */
  #id(file: SchemaFile, place: string, path: string, id: number): number {
    const other = this.#ids.get(id);
    if (other !== undefined && other !== path)
      this.#building.report(file, place, 1, `${path} and ${other} have the same method id ${id}: rename one`);
    this.#ids.set(id, path);
    return id;
  }
}
