# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Names of the numbers in a record."""

VERBS = """get_context query_device query_port alloc_pd dealloc_pd create_ah modify_ah query_ah destroy_ah
reg_mr reg_smr rereg_mr query_mr dereg_mr alloc_mw bind_mw dealloc_mw create_comp_channel create_cq resize_cq
destroy_cq poll_cq peek_cq req_notify_cq create_qp query_qp modify_qp destroy_qp post_send post_recv attach_mcast
detach_mcast create_srq modify_srq query_srq destroy_srq post_srq_recv open_xrcd close_xrcd create_xsrq
open_qp""".split()
EXTENDED = 0x80000000

OBJECTS = """device pd comp_channel cq qp srq ah mr mw flow xrcd rwq_ind_tbl wq flow_action dm counters
async_event""".split()

CM = """create_id destroy_id bind_ip resolve_ip resolve_route query_route connect listen accept reject
disconnect init_qp_attr get_event get_option set_option notify join_ip_multicast leave_multicast migrate_id query
bind_addr resolve_addr join_multicast""".split()

CM_EVENTS = """ADDR_RESOLVED ADDR_ERROR ROUTE_RESOLVED ROUTE_ERROR CONNECT_REQUEST CONNECT_RESPONSE
CONNECT_ERROR UNREACHABLE REJECTED ESTABLISHED DISCONNECTED DEVICE_REMOVAL MULTICAST_JOIN MULTICAST_ERROR
ADDR_CHANGE TIMEWAIT_EXIT""".split()

ASYNC_EVENTS = """CQ_ERR QP_FATAL QP_REQ_ERR QP_ACCESS_ERR COMM_EST SQ_DRAINED PATH_MIG PATH_MIG_ERR
DEVICE_FATAL PORT_ACTIVE PORT_ERR LID_CHANGE PKEY_CHANGE SM_CHANGE SRQ_ERR SRQ_LIMIT_REACHED QP_LAST_WQE_REACHED
CLIENT_REREGISTER GID_CHANGE WQ_FATAL""".split()

# Of the ring's entries, and of verbs.
RING_STATUS = {0: "SUCCESS", 1: "LOC_LEN_ERR", 2: "LOC_QP_OP_ERR", 3: "LOC_PROT_ERR", 4: "WR_FLUSH_ERR",
               5: "MW_BIND_ERR", 6: "GENERAL_ERR", 7: "REM_INV_REQ_ERR", 8: "REM_ACCESS_ERR", 9: "REM_OP_ERR", 10: "RETRY_EXC_ERR",
               11: "RNR_RETRY_EXC_ERR", 12: "BAD_RESP_ERR", 13: "FATAL_ERR"}
STATUS = """SUCCESS LOC_LEN_ERR LOC_QP_OP_ERR LOC_EEC_OP_ERR LOC_PROT_ERR WR_FLUSH_ERR MW_BIND_ERR BAD_RESP_ERR
LOC_ACCESS_ERR REM_INV_REQ_ERR REM_ACCESS_ERR REM_OP_ERR RETRY_EXC_ERR RNR_RETRY_EXC_ERR LOC_RDD_VIOL_ERR
REM_INV_RD_REQ_ERR REM_ABORT_ERR INV_EECN_ERR INV_EEC_STATE_ERR FATAL_ERR RESP_TIMEOUT_ERR GENERAL_ERR""".split()

REQUESTS = ["Write", "Write with immediate", "Send", "Send with immediate", "Send with invalidate", "Read",
            "Read with invalidate", "local invalidate", "fast registration", "bind window", "compare and swap",
            "fetch and add"]
WRITE, WRITE_IMM, SEND, SEND_IMM, SEND_INV, READ, READ_INV = range(7)
CMP_SWAP, FETCH_ADD = 10, 11
SENT = (SEND, SEND_IMM, SEND_INV)

FPDUS = ["Write", "Read Request", "Read Response", "Send", "Send with Invalidate", "Send with Solicited Event",
         "Send with SE and Invalidate", "Terminate", "Immediate Data", "Immediate Data with SE", "Atomic Request",
         "Atomic Response"]
OP_WRITE, OP_READ_REQ, OP_READ_RESP, OP_TERMINATE, OP_IMM, OP_IMM_SE, OP_ATOMIC_REQ, OP_ATOMIC_RESP = (
    0, 1, 2, 7, 8, 9, 10, 11)

KINDS = ["protection domain", "memory region", "memory window", "CQ", "SRQ", "QP"]
KIND_MR, KIND_CQ, KIND_SRQ, KIND_QP = 1, 3, 4, 5
# enum weft_run_deed
DEEDS = {2: "made", 3: "about to be destroyed", 5: "not destroyed: EBUSY", 6: "destroyed", 8: "registered again",
         9: "moved to RESET"}
MADE, ENDS, GONE, CHANGED, RESET = 2, 3, 6, 8, 9


def uses_rkey(opcode):
    """Does a request to send name memory of the peer?"""
    return opcode in (WRITE, WRITE_IMM, READ, READ_INV, CMP_SWAP, FETCH_ADD)


def name_of(table, number):
    if isinstance(table, dict):
        return table.get(number, "number %d" % number)
    return table[number] if number < len(table) else "number %d" % number


def call_name(family, number):
    """Of a call as the program knows it."""
    if family == 0:
        return "ibv_" + name_of(VERBS, number & ~EXTENDED)
    if family == 1:
        return "ibv method %d of %s" % (number & 0xffff, name_of(OBJECTS, number >> 16))
    return "rdma_" + name_of(CM, number)
