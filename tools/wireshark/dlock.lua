-- Lets Wireshark and tshark dissect all traffic of a simulated run (`sim replay FILE --pcap run.pcapng`):
--
--   tshark -X lua_script:tools/wireshark/dlock.lua -N n -r run.pcapng
--
-- Redis and HTTP need no hint. gRPC on etcd's port is not expected there by Wireshark, and it has no dissector
-- for ZooKeeper. Source of the format: `zookeeper.jute` and `ZooDefs.java` of ZooKeeper 3.8.

DissectorTable.get("tcp.port"):add(2379, Dissector.get("http2"))

local PORT = 2181
local OPERATIONS = {
  [1] = "create", [2] = "delete", [3] = "exists", [4] = "getData", [5] = "setData", [8] = "getChildren",
  [9] = "sync", [11] = "ping", [12] = "getChildren2", [15] = "create2", [101] = "setWatches",
  [-11] = "closeSession",
}
-- The operations whose request does not begin with a path.
local WITHOUT_PATH = {[11] = true, [101] = true, [-11] = true}
local EVENTS = {[1] = "created", [2] = "deleted", [3] = "changed", [4] = "children changed"}
local ERRORS = {
  [0] = "OK", [-101] = "no node", [-102] = "not authorised", [-103] = "bad version",
  [-108] = "no children for ephemerals", [-110] = "node exists", [-111] = "not empty",
  [-112] = "session expired", [-118] = "session moved",
}

local zookeeper = Proto("zookeeper", "ZooKeeper")
local fields = {
  length = ProtoField.int32("zookeeper.length", "Length"),
  xid = ProtoField.int32("zookeeper.xid", "Xid"),
  operation = ProtoField.int32("zookeeper.operation", "Operation", base.DEC, OPERATIONS),
  path = ProtoField.string("zookeeper.path", "Path"),
  zxid = ProtoField.int64("zookeeper.zxid", "Zxid"),
  error = ProtoField.int32("zookeeper.error", "Error", base.DEC, ERRORS),
  event = ProtoField.int32("zookeeper.event", "Event", base.DEC, EVENTS),
  session = ProtoField.uint64("zookeeper.session", "Session", base.HEX),
  timeout = ProtoField.int32("zookeeper.timeout", "Timeout in milliseconds"),
}
zookeeper.fields = fields

-- Adds the text at `at` and returns it.
local function text(frame, at, tree, field)
  if frame:len() < at + 4 then return "" end
  local length = frame(at, 4):int()
  if length <= 0 or frame:len() < at + 4 + length then return "" end
  tree:add(field, frame(at + 4, length))
  return frame(at + 4, length):string()
end

-- A login or its answer begins with the protocol's version, which is 0 like no xid; both have fixed lengths.
local function login(frame, is_request, tree)
  local length = frame:len() - 4
  if is_request and (length == 44 or length == 45) and frame(4, 4):int() == 0 then
    tree:add(fields.timeout, frame(16, 4))
    tree:add(fields.session, frame(20, 8))
    return "connect"
  elseif not is_request and (length == 36 or length == 37) and frame(4, 4):int() == 0 then
    tree:add(fields.timeout, frame(8, 4))
    tree:add(fields.session, frame(12, 8))
    return "connected"
  end
end

local function request(frame, tree)
  tree:add(fields.xid, frame(4, 4))
  tree:add(fields.operation, frame(8, 4))
  local operation = frame(8, 4):int()
  local name = OPERATIONS[operation] or ("operation " .. operation)
  if WITHOUT_PATH[operation] then return name end
  return name .. " " .. text(frame, 12, tree, fields.path)
end

local function reply(frame, tree)
  tree:add(fields.xid, frame(4, 4))
  tree:add(fields.zxid, frame(8, 8))
  tree:add(fields.error, frame(16, 4))
  local xid, code = frame(4, 4):int(), frame(16, 4):int()
  if xid == -1 and frame:len() >= 28 then
    tree:add(fields.event, frame(20, 4))
    local event = EVENTS[frame(20, 4):int()] or "?"
    return "event: " .. event .. " " .. text(frame, 28, tree, fields.path)
  end
  return (xid == -2 and "ping" or "reply") .. " " .. (ERRORS[code] or ("error " .. code))
end

-- True until a frame of the packet has been dissected.
local first

local function dissect(frame, packet, tree)
  local is_request = packet.dst_port == PORT
  local branch = tree:add(zookeeper, frame())
  branch:add(fields.length, frame(0, 4))
  local words = login(frame, is_request, branch)
  if not words and is_request and frame:len() >= 12 then words = request(frame, branch) end
  if not words and not is_request and frame:len() >= 20 then words = reply(frame, branch) end
  words = words or "?"
  branch:append_text(": " .. words)
  packet.cols.info:append((first and "" or "; ") .. words)
  first = false
  return frame:len()
end

function zookeeper.dissector(buffer, packet, tree)
  packet.cols.protocol = "ZooKeeper"
  packet.cols.info:clear()
  first = true
  dissect_tcp_pdus(buffer, tree, 4, function(head, _, at) return 4 + head(at, 4):int() end, dissect)
  return buffer:len()
end

DissectorTable.get("tcp.port"):add(PORT, zookeeper)
