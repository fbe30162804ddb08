/** Rules of proto3 that the parser lets pass. Called by build.ts for every message and enum. */
import type protobuf from 'protobufjs';
import type { Building } from './building.ts';

const numberMax = 2 ** 29 - 1;

export function checkMessage(building: Building, node: protobuf.Type, path: string): void {
  for (const field of node.fieldsArray) {
    const place = building.place('field', `${path}.${field.name}`);
    const token = place.number ?? place.name;
    if (field.id < 1 || field.id > numberMax)
      building.report(token, `field number ${field.id} is not between 1 and ${numberMax}`);
    else if (field.id >= 19000 && field.id <= 19999)
      building.report(token, 'field numbers 19000 to 19999 belong to protobuf itself');
    if (field.options?.default !== undefined) building.report(place.name, 'proto3 has no default values');
  }
  if (node.extensions !== undefined && node.extensions.length > 0) {
    building.report(building.place('message', path).name, 'proto3 has no extension ranges');
  }
}

export function checkEnum(building: Building, node: protobuf.Enum, path: string): void {
  const values = Object.entries(node.values);
  const first = values[0];
  if (first === undefined)
    building.report(building.place('enum', path).name, `enum ${node.name} has no values`);
  else if (first[1] !== 0) {
    const place = building.place('value', `${path}.${first[0]}`);
    building.report(place.number ?? place.name, `the first value of enum ${node.name} must be 0 in proto3`);
  }
  for (const [name, number] of values) {
    if (number === (number | 0)) continue;
    const place = building.place('value', `${path}.${name}`);
    building.report(place.number ?? place.name, `enum value ${number} does not fit 32 bits`);
  }
}
