"""Decodes Protobuf with a descriptor set (protoc --include_imports --descriptor_set_out), using Google's library.

The path before the data contains indexes of messages in the file that was given to protoc, which is the last one in the
set."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from kdump.decode.confluent import Payload
from kdump.decode.decoder_interface import DecoderError, FormatError
from kdump.decode.jsonable import to_json
from kdump.extras import how_to_install

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
    from google.protobuf.descriptor_pool import DescriptorPool


def protobuf_payload(path: str) -> Payload:
    """Return the function that decodes by the descriptor set in the file `path`. Raises DecoderError."""
    try:
        from google.protobuf import descriptor_pb2
    except ImportError:
        raise DecoderError(f"Protobuf needs the package protobuf: {how_to_install('protobuf')}") from None
    hint = "was it made by protoc --include_imports --descriptor_set_out?"
    try:
        with open(path, "rb") as file:
            descriptors = descriptor_pb2.FileDescriptorSet.FromString(file.read())
    except OSError as error:
        raise DecoderError(f"{path}: {error.strerror}") from None
    except Exception as error:  # the library raises many types
        raise DecoderError(f"{path}: not a usable descriptor set ({error}): {hint}") from None
    if not descriptors.file:
        raise DecoderError(
            f"{path}: not a descriptor set; create one with protoc --include_imports --descriptor_set_out"
        )
    return descriptors_payload(descriptors, path, hint)


def descriptors_payload(descriptors: FileDescriptorSet, path: str, hint: str = "") -> Payload:
    """Return the function that decodes by the last file of a descriptor set. `path`: where it is from. Raises
    DecoderError."""
    from google.protobuf import json_format, message_factory, unknown_fields

    pool, main = _loaded(descriptors, path, hint)

    def name_of(indexes: tuple[int, ...]) -> str:
        names = [main.package] if main.package else []
        messages = main.message_type
        for index in indexes:
            if not 0 <= index < len(messages):
                raise FormatError(f"{main.name} in the descriptor set has no message with the indexes {list(indexes)}")
            names.append(messages[index].name)
            messages = messages[index].nested_type
        return ".".join(names)

    def payload(data: bytes, start: int, indexes: tuple[int, ...]) -> tuple[Any, str]:
        name = name_of(indexes)
        try:
            message = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))()
            message.ParseFromString(data[start:])
            value = json_format.MessageToDict(message, preserving_proto_field_name=True, descriptor_pool=pool)
            fields = unknown_fields.UnknownFieldSet(message)
            unknown = sorted({fields[i].field_number for i in range(len(fields))})
            size = message.ByteSize()
            message.DiscardUnknownFields()
            nested = not unknown and message.ByteSize() < size
        except Exception as error:  # the library raises many types
            raise FormatError(f"does not match {name}: {error}"[:300], start) from None
        note = f"field numbers that {name} does not define: {', '.join(map(str, unknown[:20]))}" if unknown else ""
        if nested:
            note = f"fields that the messages in {name} do not define"
        return to_json(value), note

    return payload


def _loaded(descriptors: FileDescriptorSet, path: str, hint: str = "") -> tuple[DescriptorPool, FileDescriptorProto]:
    """Return a pool with the files of a descriptor set, and the last one, which defines a message. Raises
    DecoderError."""
    from google.protobuf.descriptor_pool import DescriptorPool

    try:
        pool = DescriptorPool()
        added = {proto.name for proto in descriptors.file}
        for proto in descriptors.file:
            for needed in proto.dependency:
                if needed not in added and needed.startswith("google/protobuf/"):
                    added.add(needed)
                    module = importlib.import_module(needed[: -len(".proto")].replace("/", ".") + "_pb2")
                    pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
            pool.AddSerializedFile(proto.SerializeToString())
            pool.FindFileByName(proto.name)
    except Exception as error:  # the library raises many types
        raise DecoderError(f"{path}: not a usable descriptor set ({error}){hint and ': '}{hint}") from None
    main = descriptors.file[-1]
    if not main.message_type:
        raise DecoderError(f"{path}: {main.name or 'the last file'} in the descriptor set defines no message")
    return pool, main


def first_message(descriptors: FileDescriptorSet, path: str) -> type[Any]:
    """Return the class of the first message of the last file of a descriptor set. Raises DecoderError."""
    from google.protobuf import message_factory

    pool, main = _loaded(descriptors, path)
    name = ".".join(filter(None, (main.package, main.message_type[0].name)))
    made: type[Any] = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
    return made
