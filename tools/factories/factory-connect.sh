#!/usr/bin/env bash
# Builds the disks of two clusters of one broker each: Connect runs on the first, Kafka Streams on the second, and
# MirrorMaker copies from the first, "east", to the second, "west".
# factory-connect.sh JARS OUT PORT        JARS: those of Kafka with connect-file, connect-mirror and kafka-streams
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd); jars=$1; out=$2; port=$3; run=$out/run
rm -rf "$out"; mkdir -p "$run"
one=127.0.0.1:$port two=127.0.0.1:$((port+10)) rest=$((port+5))
declare -A pid
java() { command java -Xmx300m -cp "$jars/*" "$@"; }
launch() { command java -Xmx300m -cp "$jars/*" "${@:2}" > "$run/$1.log" 2>&1 & pid[$1]=$!; }
stop() { kill "${pid[$1]}" 2>/dev/null || true; wait "${pid[$1]}" 2>/dev/null || true; unset "pid[$1]"; }
trap 'for p in "${pid[@]}"; do kill -9 $p 2>/dev/null || true; done' EXIT
broker() { # NAME PORT
  cat > "$run/$1.properties" <<C
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$(($2+1))
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:$2,CONTROLLER://127.0.0.1:$(($2+1))
log.dirs=$out/$1
num.partitions=1
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
log.index.size.max.bytes=4096
auto.create.topics.enable=false
log.cleaner.dedupe.buffer.size=20000000
C
  java kafka.tools.StorageTool format -t "$(java kafka.tools.StorageTool random-uuid 2>/dev/null)" -c "$run/$1.properties" > /dev/null 2>&1
  launch "$1" kafka.Kafka "$run/$1.properties"
}
topic() { java org.apache.kafka.tools.TopicCommand --bootstrap-server "$1" --create --topic "$2" "${@:3}" 2> /dev/null; }
ask() { # METHOD PATH [BODY]
  for _ in $(seq 90); do
    curl -sf -X "$1" -H 'Content-Type: application/json' "http://127.0.0.1:$rest/$2" ${3:+-d "$3"} && { echo; return; }
    sleep 1
  done
  echo "failed: $*" >&2; exit 1
}
broker one "$port"; broker two $((port+10)); sleep 8
for name in lines orders; do topic "$one" $name; done
for name in clicks views users cities; do topic "$two" $name; done

cat > "$run/connect.properties" <<C
bootstrap.servers=$one
group.id=shop
listeners=HTTP://127.0.0.1:$rest
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
config.storage.topic=connect-configs
offset.storage.topic=connect-offsets
status.storage.topic=connect-status
config.storage.replication.factor=1
offset.storage.replication.factor=1
status.storage.replication.factor=1
offset.storage.partitions=1
status.storage.partitions=1
offset.flush.interval.ms=1000
exactly.once.source.support=enabled
C
mkdir -p /srv/feeds; seq -f 'line %g' 20 > /srv/feeds/in.txt; seq -f 'old %g' 5 > /srv/feeds/old.txt
launch connect org.apache.kafka.connect.cli.ConnectDistributed "$run/connect.properties"
string=org.apache.kafka.connect.storage.StringConverter
ask POST connectors '{"name":"lines-in","config":{"connector.class":"FileStreamSource","tasks.max":"1","file":"/srv/feeds/in.txt","topic":"lines"}}'
ask POST connectors '{"name":"old-in","config":{"connector.class":"FileStreamSource","tasks.max":"1","file":"/srv/feeds/old.txt","topic":"lines"}}'
ask POST connectors "{\"name\":\"lines-out\",\"config\":{\"connector.class\":\"FileStreamSink\",\"tasks.max\":\"1\",\"file\":\"/srv/feeds/out.txt\",\"topics\":\"lines\",\"db.password\":\"not-so-secret\",\"value.converter\":\"$string\"}}"
ask POST connectors '{"name":"orders-out","config":{"connector.class":"FileStreamSink","tasks.max":"1","file":"/srv/feeds/orders.txt","topics":"orders"}}'
sleep 5; seq -f 'line %g' 21 30 >> /srv/feeds/in.txt
ask PUT connectors/lines-in/config '{"connector.class":"FileStreamSource","tasks.max":"1","file":"/srv/feeds/in.txt","topic":"lines","batch.size":"5"}'
ask DELETE connectors/old-in
seq -f 'not JSON %g' 3 | java org.apache.kafka.tools.ConsoleProducer --bootstrap-server "$one" --topic orders 2> /dev/null
sleep 8; ask PUT connectors/lines-out/pause; sleep 4; ask GET 'connectors?expand=status'; stop connect

cat > "$run/mm2.properties" <<C
clusters=east,west
east.bootstrap.servers=$one
west.bootstrap.servers=$two
east->west.enabled=true
west->east.enabled=false
topics=orders|lines
groups=readers
offset.lag.max=2
sync.topic.configs.enabled=false
sync.topic.acls.enabled=false
sync.group.offsets.enabled=true
sync.group.offsets.interval.seconds=1
emit.checkpoints.interval.seconds=1
emit.heartbeats.interval.seconds=3
refresh.topics.interval.seconds=1
refresh.groups.interval.seconds=1
replication.factor=1
offset-syncs.topic.replication.factor=1
checkpoints.topic.replication.factor=1
heartbeats.topic.replication.factor=1
offset.storage.replication.factor=1
offset.storage.partitions=1
status.storage.partitions=1
config.storage.replication.factor=1
status.storage.replication.factor=1
C
launch mm2 org.apache.kafka.connect.mirror.MirrorMaker "$run/mm2.properties"
until [ -s "$out/two/east.lines-0/00000000000000000000.log" ]; do sleep 1; done
java org.apache.kafka.tools.consumer.ConsoleConsumer --bootstrap-server "$one" --topic lines --group readers --from-beginning --max-messages 12 2> /dev/null > /dev/null
until [ -s "$out/two/east.checkpoints.internal-0/00000000000000000000.log" ]; do sleep 1; done
sleep 5; stop mm2
java "$here/Streams.java" "$two" "$run/state" > "$run/streams.log" 2>&1
stop one; stop two; rm -rf "$run" /srv/feeds
echo built "$out"
